package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// fromEnv fills in the settings of a machine without any: defaults, with store
// and socket where the environment says that this user's belong.
func (c *Config) fromEnv(env func(string) string) {
	setDefaults(reflect.ValueOf(c).Elem())
	c.Store.Path = filepath.Join(stateDir(env), "spool.db")
	c.API.Listen = []Listen{
		{Addr: "unix:" + filepath.Join(runtimeDir(env), "tgspool.sock")},
		{Addr: "tcp:127.0.0.1:8081"},
	}
}

// stateDir returns the folder for the store: $STATE_DIRECTORY, the first where
// systemd gives several, else $XDG_STATE_HOME/tgspool, else
// ~/.local/state/tgspool, and without a home /var/lib/tgspool.
func stateDir(env func(string) string) string {
	if dir, _, _ := strings.Cut(env("STATE_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) { // others are to be ignored, says XDG
		return filepath.Join(dir, "tgspool")
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "tgspool")
	}
	return "/var/lib/tgspool" // no home: a container or a service
}

// runtimeDir returns the folder for the socket: $RUNTIME_DIRECTORY, else
// $XDG_RUNTIME_DIR/tgspool, else one of this user's in the folder for
// temporary files.
func runtimeDir(env func(string) string) string {
	if dir, _, _ := strings.Cut(env("RUNTIME_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tgspool")
	}
	return filepath.Join("/tmp", "tgspool-"+strconv.Itoa(os.Getuid()))
}

// envBot returns the bot of the environment: named default, with the defaults
// and TGSPOOL_API_BASE as its api_base.
func (d *decoder) envBot(env func(string) string) Bot {
	bot := Bot{Name: envBotName, Chats: map[string]string{}}
	setDefaults(reflect.ValueOf(&bot).Elem())
	base := env("TGSPOOL_API_BASE")
	if base == "" {
		return bot
	}
	text, why, hint := shape("base", base)
	if why != "" {
		d.fail(Position{File: "TGSPOOL_API_BASE"}, "", why, hint)
	}
	bot.APIBase = text
	return bot
}

// envBotName is the name of the bot whose token the environment may give.
const envBotName = "default"
