package setup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/config"
)

// Entry is what setup writes of one bot. What is empty isn't written.
type Entry struct {
	Bot       string
	Me        string // the owner's id in decimal
	TokenFile string
	APIBase   string
}

// Change is a new text of the settings file.
type Change struct {
	Path     string
	Old, New []byte // Old is nil where there is no file
	// Foreign says that Old isn't as setup writes it: somebody has edited it.
	Foreign bool
	// Was is the entry that Old has for the bot, nil when it has none.
	Was *Entry
}

// Same reports whether there is nothing to be written.
func (c Change) Same() bool { return c.Old != nil && bytes.Equal(c.Old, c.New) }

// Plan works out the settings file with the entry in the place of the bot's old
// one. Other bots' entries stay. Keys that another file sets are left out, and
// one that says something else there is an error.
func (d Dir) Plan(e Entry) (Change, error) {
	c := Change{Path: d.Settings()}
	old, err := os.ReadFile(c.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("reading the settings: %w", err)
	}
	entries := []Entry{}
	if err == nil {
		c.Old = old
		cfg, err := config.Load(c.Path, func(string) string { return "" })
		if err != nil && !errors.Is(err, config.ErrNothingConfigured) {
			return c, err
		}
		entries = entriesOf(cfg)
		c.Foreign = !bytes.Equal(old, render(entries))
	}
	if i := slices.IndexFunc(entries, func(x Entry) bool { return x.Bot == e.Bot }); i >= 0 {
		was := entries[i]
		c.Was = &was
		entries = slices.Delete(entries, i, i+1)
	}
	if e, err = d.elsewhere(e); err != nil {
		return c, err
	}
	c.New = render(append(entries, e))
	return c, nil
}

// elsewhere takes out of an entry what other files say already.
func (d Dir) elsewhere(e Entry) (Entry, error) {
	cfg, err := config.Load(d.Main(), func(string) string { return "" })
	if errors.Is(err, config.ErrNothingConfigured) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	bot, ok := cfg.Bot(e.Bot)
	if !ok {
		return e, nil
	}
	for _, key := range []struct {
		name, has string
		wants     *string
	}{
		{"chats.me", bot.Chats["me"], &e.Me},
		{"token_file", bot.TokenFile, &e.TokenFile},
		{"api_base", bot.APIBase, &e.APIBase},
	} {
		at, set := cfg.Where("bots." + e.Bot + "." + key.name)
		if !set || at.File == d.Settings() {
			continue
		}
		if *key.wants != "" && *key.wants != key.has {
			return e, fmt.Errorf("%s: bots.%s.%s is %s there; change it there, or take it out", at, e.Bot, key.name, key.has)
		}
		*key.wants = ""
	}
	return e, nil
}

// Apply writes the file and reads all settings as the daemon will. Where they
// aren't right then, the old file comes back.
func (d Dir) Apply(c Change) error {
	if c.Old != nil && c.Foreign {
		if err := d.write(c.Path+".old", c.Old); err != nil {
			return err
		}
	}
	if err := d.write(c.Path, c.New); err != nil {
		return err
	}
	_, err := config.Load(d.Main(), func(string) string { return "" })
	if err == nil {
		return nil
	}
	if c.Old == nil {
		return errors.Join(err, os.Remove(c.Path))
	}
	return errors.Join(err, d.write(c.Path, c.Old))
}

func (d Dir) write(path string, data []byte) error {
	s, err := Stage(path, data, 0o640, d.Group)
	if err != nil {
		return err
	}
	return s.Commit()
}

// entriesOf reads back what render has written.
func entriesOf(cfg *config.Config) []Entry {
	if cfg == nil {
		return nil
	}
	entries := make([]Entry, 0, len(cfg.Bots)+1)
	for _, b := range cfg.Bots {
		e := Entry{Bot: b.Name, Me: b.Chats["me"], TokenFile: b.TokenFile}
		if _, set := cfg.Where("bots." + b.Name + ".api_base"); set {
			e.APIBase = b.APIBase
		}
		entries = append(entries, e)
	}
	return entries
}

// render writes the file.
func render(entries []Entry) []byte {
	entries = slices.SortedFunc(slices.Values(entries), func(x, y Entry) int { return cmp.Compare(x.Bot, y.Bot) })
	var b strings.Builder
	b.WriteString("# Written by tgspool setup, which asks before it replaces what somebody has edited here.\n" +
		"# Settings of your own are better put into another file of this folder.\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "\n[bots.%s]\n", e.Bot)
		if e.TokenFile != "" {
			fmt.Fprintf(&b, "token_file = %s\n", strconv.Quote(e.TokenFile))
		}
		if e.APIBase != "" {
			fmt.Fprintf(&b, "api_base = %s\n", strconv.Quote(e.APIBase))
		}
		if e.Me != "" {
			fmt.Fprintf(&b, "\n[bots.%s.chats]\nme = %s # the owner: default chat, alerts, and whom allow_from = [\"me\"] lets in\n", e.Bot, e.Me)
		}
	}
	return []byte(b.String())
}

// TokenPlace is where a bot's token belongs: the file that the settings name,
// else the credential. named tells which.
func (d Dir) TokenPlace(cfg *config.Config, bot string) (path string, named bool) {
	if cfg != nil {
		if b, ok := cfg.Bot(bot); ok && b.TokenFile != "" {
			return b.TokenFile, true
		}
	}
	return d.Credential(bot), false
}

// FolderOf is the folder of a main settings file.
func FolderOf(main string) string {
	if main == "" {
		return SystemDir
	}
	return filepath.Dir(main)
}
