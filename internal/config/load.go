package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
)

// systemPath is the settings file of an installed tgspool.
const systemPath = "/etc/tgspool/tgspool.toml"

// maxFileSize bounds the reading of a settings file: a device, or a file that
// is something else, is refused before it fills the memory.
const maxFileSize = 1 << 20

// Resolve returns the main settings file: the flag's value, else TGSPOOL_CONFIG,
// else /etc/tgspool/tgspool.toml when that exists, else "". explicit is set when
// someone named the file, so that its absence is an error.
func Resolve(flag string, env func(string) string) (path string, explicit bool) {
	return resolve(flag, env, systemPath)
}

func resolve(flag string, env func(string) string, system string) (string, bool) {
	if named := cmp.Or(flag, env("TGSPOOL_CONFIG")); named != "" {
		return named, true
	}
	// Any error but absence is left to Load, which names it.
	if _, err := os.Stat(system); errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	return system, false
}

// Load reads the settings: the file at path, then conf.d/*.toml beside it in
// the order of their names. With path "", or when the files set no key at all,
// the environment alone decides: the bot "default" with the token in
// TELEGRAM_BOT_TOKEN, the store in $STATE_DIRECTORY or $XDG_STATE_HOME/tgspool,
// the socket in $RUNTIME_DIRECTORY or $XDG_RUNTIME_DIR/tgspool. Files that name
// no bot get the bot "default" too when that token is there.
//
// Wrong settings are returned as Errors. ErrNothingConfigured comes with a
// Config without bots, whose store and socket are where the others would be, so
// that commands can look for a daemon all the same.
func Load(path string, env func(string) string) (*Config, error) {
	return load(path, env, notBuilt())
}

// load is Load with the list of keys that nothing acts on yet.
func load(path string, env func(string) string, missing []unbuilt) (*Config, error) {
	cfg := &Config{Path: path}
	root, whole, errs := cfg.read(path)
	if !whole {
		return nil, errs.sorted()
	}
	d := &decoder{errs: errs, set: map[string]*node{}}
	if len(root.keys) == 0 {
		cfg.fromEnv(env)
	} else {
		setDefaults(reflect.ValueOf(cfg).Elem())
	}
	d.table(root, reflect.ValueOf(cfg).Elem(), "", "")
	if len(cfg.Bots) == 0 && strings.TrimSpace(env("TELEGRAM_BOT_TOKEN")) != "" {
		cfg.Bots = append(cfg.Bots, d.envBot(env))
	}
	slices.SortFunc(cfg.Bots, func(a, b Bot) int { return cmp.Compare(a.Name, b.Name) })
	d.verify(cfg)
	d.unbuilt(cfg, missing)
	if len(d.errs) > 0 {
		return nil, d.errs.sorted()
	}
	cfg.where = map[string]Position{}
	places(root, "", cfg.where)
	if len(root.keys) == 0 && len(cfg.Bots) == 0 {
		return cfg, nothing{cfg.Path}
	}
	return cfg, nil
}

// read reads and merges the trees of all files. whole is false when one of them
// can't be read or is no TOML: what is in it then looks missing elsewhere.
func (c *Config) read(path string) (root *node, whole bool, errs Errors) {
	root = newTable(Position{File: path, Line: 1, Column: 1})
	if path == "" {
		return root, true, nil
	}
	files, errs := settingsFiles(path)
	whole = len(errs) == 0
	for order, file := range files {
		data, err := readSettings(file)
		if err != nil {
			errs = append(errs, &Error{File: file, order: order, Why: err.Error(), Hint: readHint(err)})
			whole = false
			continue
		}
		c.Files = append(c.Files, file)
		tree, bad := parse(file, order, data)
		errs = append(errs, bad...)
		if tree == nil {
			whole = false
			continue
		}
		errs = append(errs, merge(root, tree, "")...)
	}
	return root, whole, errs
}

// settingsFiles lists the main file and those of conf.d. Names that begin with
// a dot are editors' leftovers.
func settingsFiles(path string) ([]string, Errors) {
	files := []string{path}
	dir := filepath.Join(filepath.Dir(path), "conf.d")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return files, Errors{{File: dir, order: 1, Why: fmt.Sprintf("reading the folder: %v", plain(err)), Hint: readHint(err)}}
	}
	for _, e := range entries { // sorted by name
		if !e.IsDir() && filepath.Ext(e.Name()) == ".toml" && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// readSettings reads one file, within limits.
func readSettings(file string) ([]byte, error) {
	data, err := readUpTo(file, maxFileSize+1)
	if err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("reading the settings: larger than %d MiB", maxFileSize>>20)
	}
	return data, nil
}

// readUpTo reads at most limit bytes of a file. Its errors don't name the file.
func readUpTo(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, plain(err)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return data, plain(errors.Join(err, f.Close()))
}

// plain takes the path off an error of the os package, where it is said already.
func plain(err error) error {
	var perr *fs.PathError
	if errors.As(err, &perr) {
		return perr.Err
	}
	return err
}

// readHint says what to do about a file that can't be read.
func readHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "give the user that runs tgspool the right to read it"
	case errors.Is(err, fs.ErrNotExist):
		return "check the name, or run tgspool setup"
	}
	return ""
}
