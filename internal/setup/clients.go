package setup

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/config"
)

// NewClientToken makes a token that looks like one of Telegram's, so that every
// library takes it: the bot's id and 35 characters, 210 random bits.
func NewClientToken(botID int64) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	random := make([]byte, 35)
	_, _ = rand.Read(random) // it never fails: without randomness the process ends
	for i, b := range random {
		random[i] = letters[b%64]
	}
	return strconv.FormatInt(botID, 10) + ":" + string(random)
}

// HashClientToken is what the settings hold of a token.
func HashClientToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Client is a client of a bot as it is written into the settings. What is empty
// isn't written.
type Client struct {
	Bot, Name string
	Hash      string // of its token
	Methods   []string
	Chats     []string // as the caller has named them
	Full      bool
	Lane      string
	MaxWait   time.Duration
	Rate      float64
}

// Clients is the file of the clients. What somebody has edited in it stays.
type Clients struct {
	dir  Dir
	main string // the main settings file
}

// OpenClients is the clients' file beside the main settings file.
func OpenClients(main string) Clients {
	if main == "" {
		main = OpenDir(SystemDir).Main()
	}
	return Clients{dir: OpenDir(filepath.Dir(main)), main: main}
}

// Path is the file itself.
func (c Clients) Path() string { return filepath.Join(c.dir.Path, "conf.d", "60-clients.toml") }

// Add writes a client at the end of the file.
func (c Clients) Add(e Client) error {
	return c.change(func(_ *config.Config, text string) (string, error) {
		if text == "" {
			text = "# Written by tgspool client; what is changed here by hand stays.\n"
		}
		return text + "\n" + renderClient(e), nil
	})
}

// Rotate gives a client another token.
func (c Clients) Rotate(bot, name, hash string) error {
	return c.change(func(cfg *config.Config, text string) (string, error) {
		id, err := c.find(cfg, bot, name)
		if err != nil {
			return "", err
		}
		at, ok := cfg.Where(id + ".token_sha256")
		lines := strings.SplitAfter(text, "\n")
		if !ok || at.Line > len(lines) {
			return "", fmt.Errorf("%s: no token_sha256 of client %q", c.Path(), name)
		}
		lines[at.Line-1] = "token_sha256 = " + strconv.Quote(hash) + "\n"
		return strings.Join(lines, ""), nil
	})
}

// Remove takes a client out.
func (c Clients) Remove(bot, name string) error {
	return c.change(func(cfg *config.Config, text string) (string, error) {
		id, err := c.find(cfg, bot, name)
		if err != nil {
			return "", err
		}
		at, _ := cfg.Where(id)
		lines := strings.SplitAfter(text, "\n")
		from := at.Line - 1
		to := from + 1
		for to < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[to]), "[") {
			to++
		}
		return strings.Join(append(lines[:from:from], lines[to:]...), ""), nil
	})
}

// ErrNoClient is returned for a client that isn't in the settings.
var ErrNoClient = errors.New("no such client")

// find returns the place of a client in the settings, which must be in the
// clients' file.
func (c Clients) find(cfg *config.Config, bot, name string) (id string, err error) {
	b, ok := cfg.Bot(bot)
	if !ok {
		return "", fmt.Errorf("bot %q: %w", bot, ErrNoClient)
	}
	for i, client := range b.Clients {
		if client.Name != name {
			continue
		}
		id := "bots." + bot + ".clients." + strconv.Itoa(i)
		if at, _ := cfg.Where(id); at.File != c.Path() {
			return "", fmt.Errorf("client %q stands at %s; change it there", name, at)
		}
		return id, nil
	}
	return "", fmt.Errorf("bot %s has no client %q: %w", bot, name, ErrNoClient)
}

// change writes a new text of the file and reads all settings as the daemon
// will. Where they aren't right then, the old file comes back.
func (c Clients) change(to func(cfg *config.Config, text string) (string, error)) error {
	none := func(string) string { return "" }
	cfg, err := config.Load(c.main, none)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(c.Path())
	existed := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the clients: %w", err)
	}
	text, err := to(cfg, string(old))
	if err != nil {
		return err
	}
	if err := c.dir.write(c.Path(), []byte(text)); err != nil {
		return err
	}
	if _, err = config.Load(c.main, none); err == nil {
		return nil
	}
	if !existed {
		return errors.Join(err, os.Remove(c.Path()))
	}
	return errors.Join(err, c.dir.write(c.Path(), old))
}

// renderClient writes the table of a client.
func renderClient(e Client) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[[bots.%s.clients]]\nname = %s\ntoken_sha256 = %s\n", e.Bot, quote(e.Name), quote(e.Hash))
	fmt.Fprintf(&b, "methods = %s\nchats = %s\n", quoteAll(e.Methods), quoteAll(e.Chats))
	if e.Full {
		b.WriteString("full = true\n")
	}
	if e.Lane != "" {
		fmt.Fprintf(&b, "lane = %s\n", quote(e.Lane))
	}
	if e.MaxWait > 0 {
		fmt.Fprintf(&b, "max_wait = %s\n", quote(e.MaxWait.String()))
	}
	if e.Rate > 0 {
		fmt.Fprintf(&b, "rate = %s\n", rateTOML(e.Rate))
	}
	return b.String()
}

func rateTOML(rate float64) string {
	s := strconv.FormatFloat(rate, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote writes a TOML string. Whoever calls has plain names; what isn't is
// refused when the file is read.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
