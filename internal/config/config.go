package config

import (
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Config is the whole of the settings: read, completed with the defaults and
// checked. A Config that Load returned without an error can be used as it is;
// nothing in it needs another look. It is not written to after Load, so that
// goroutines may share it.
//
// The tags of the fields are the one place that says what a key is called, what
// it may hold, what it is when absent, what it means, and whether a change
// needs a restart; decoder, defaults, Keys, Example and Diff all read them.
type Config struct {
	Store   Store   `toml:"store"`
	Backup  Backup  `toml:"backup"`
	API     API     `toml:"api"`
	Monitor Monitor `toml:"monitor"`
	Log     Log     `toml:"log"`
	Daemon  Daemon  `toml:"daemon"`

	// Bots holds the bots, sorted by name.
	Bots []Bot `toml:"bots"`

	// Path is the main settings file, "" when there is none.
	Path string
	// Files lists every file that was read, in the order of reading.
	Files []string

	// where gives the place of each key that a file sets, by its dotted path;
	// elements of lists of tables are counted from 0.
	where map[string]Position
	// unbuilt are the keys among them that nothing acts on yet; for Check.
	unbuilt []Problem
}

// Store says where the spool lives and how much of it is kept.
type Store struct {
	Path      string `toml:"path" default:"/var/lib/tgspool/spool.db" form:"path" required:"true" restart:"true" doc:"The spool's file. Uploaded files, snapshots and the reserve lie in the same folder."`
	Keep      Keep   `toml:"keep"`
	KeepSize  int64  `toml:"keep_size" default:"256MiB" form:"size" min:"1" doc:"The most that ended records (done, cancelled, expired, handled, ignored, dead) may take together; the oldest go first."`
	MaxSize   int64  `toml:"max_size" default:"1GiB" form:"size" min:"1MiB" restart:"true" doc:"The most that the spool's file may grow to. At this size intake stops and new jobs are refused until there is room."`
	MaxUpload int64  `toml:"max_upload" default:"50MB" form:"size" min:"1" doc:"The largest file that is taken for sending."`
	OnDamage  string `toml:"on_damage" default:"snapshot" enum:"snapshot|stop" restart:"true" doc:"What happens at start when the spool's file can't be used: take the last good snapshot into use, fenced, or refuse to start."`
}

// Keep says how long ended records stay in the store.
type Keep struct {
	Done    time.Duration `toml:"done" default:"72h" min:"0s" doc:"How long jobs that are done, cancelled or expired are kept, and with them their dedupe keys."`
	Handled time.Duration `toml:"handled" default:"72h" min:"0s" doc:"How long updates that are handled, ignored or expired are kept. Their ids are remembered for 48h in any case."`
	Dead    time.Duration `toml:"dead" default:"720h" min:"0s" doc:"How long dead jobs and dead updates are kept."`
}

// Backup says where snapshots of the store go, and when.
type Backup struct {
	To   string `toml:"to" form:"path" doc:"The folder for snapshots, better on another device. Empty: snapshots/ beside the store."`
	At   string `toml:"at" default:"03:40" form:"clock" doc:"The local time of day of the daily snapshot. Empty: none is made."`
	Keep int    `toml:"keep" default:"7" min:"1" doc:"How many snapshots are kept; the oldest go first."`
}

// API says where programs reach the daemon, and how.
type API struct {
	Listen         []Listen      `toml:"listen" default:"[\"unix:/run/tgspool/tgspool.sock\", { addr = \"unix:/run/tgspool/submit.sock\", serve = [\"submit\"] }, \"tcp:127.0.0.1:8081\"]" restart:"true" doc:"The addresses to listen on. An entry is an address alone, or a table with the keys below."`
	Hosts          []string      `toml:"hosts" form:"host" doc:"Further names that the Host header of a request may carry, beside the addresses themselves and localhost."`
	WebhookHosts   []string      `toml:"webhook_hosts" form:"host" doc:"Hosts, beside this machine, to which a local setWebhook may send updates."`
	MaxWait        time.Duration `toml:"max_wait" default:"10m" min:"1s" doc:"The longest wait of a call for its answer; then the caller is told to come back and the job stays."`
	AdminTokenFile string        `toml:"admin_token_file" form:"path" doc:"A file with the bearer token for the management API over TCP. Empty: only logins made by tgspool dashboard."`
	Dashboard      bool          `toml:"dashboard" default:"true" doc:"Whether the pages are served."`
}

// Listen is one address that the daemon listens on.
type Listen struct {
	Addr    string   `toml:"addr" form:"listen" required:"true" example:"tcp:127.0.0.1:8081" doc:"Where: unix:/path/to.sock or tcp:host:port."`
	Serve   []string `toml:"serve" enum:"bot|manage|metrics|submit" unset:"true" example:"[\"bot\", \"manage\", \"metrics\"]" doc:"What is served there. Absent: all but submit; off loopback without TLS only bot, and only to client tokens."`
	TLSCert string   `toml:"tls_cert" form:"path" doc:"The certificate file (PEM). Needs tls_key."`
	TLSKey  string   `toml:"tls_key" form:"path" doc:"The file of the certificate's private key (PEM)."`
}

// Network returns "unix" or "tcp", as the net package spells it.
func (l Listen) Network() string {
	network, _, _ := strings.Cut(l.Addr, ":")
	return network
}

// Address returns the path of a unix socket or the host:port of a TCP address.
func (l Listen) Address() string {
	_, address, _ := strings.Cut(l.Addr, ":")
	return address
}

// Exposed reports whether the address can be reached from other machines
// without TLS. There only client tokens may be accepted and nothing but the
// bot endpoint may be served.
func (l Listen) Exposed() bool {
	return l.Network() == "tcp" && l.TLSCert == "" && !loopback(l.Address())
}

// Serves reports whether the role ("bot", "manage", "metrics" or "submit") is
// served at the address.
func (l Listen) Serves(role string) bool {
	return slices.Contains(l.Serve, role)
}

// loopback reports whether a host:port names this machine only. An empty host
// means every interface and is not loopback; names other than localhost are
// not looked up.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Socket returns the path of the first unix socket that serves management, the
// one that the commands talk to, or "" when there is none.
func (a API) Socket() string {
	for _, l := range a.Listen {
		if l.Network() == "unix" && l.Serves("manage") {
			return l.Address()
		}
	}
	return ""
}

// Monitor says when and where the daemon reports on itself.
type Monitor struct {
	Name              string        `toml:"name" default:"%H" doc:"The name of this machine in alerts and heartbeats; %H is its host name."`
	HeartbeatURL      string        `toml:"heartbeat_url" form:"url" secret:"true" doc:"A URL that is fetched while all is well: the store can be written, the loops turn, no bot is refused, none is offline for offline_after, nothing is overdue for oldest_pending."`
	HeartbeatInterval time.Duration `toml:"heartbeat_interval" default:"1m" min:"1s" doc:"How often heartbeat_url is fetched."`
	OfflineAfter      time.Duration `toml:"offline_after" default:"10m" min:"1s" doc:"How long Telegram may be out of reach before that counts as trouble."`
	OldestPending     time.Duration `toml:"oldest_pending" default:"10m" min:"1s" doc:"How long a job may be overdue before that counts as trouble."`
	StatsInterval     time.Duration `toml:"stats_interval" default:"1m" min:"0s" doc:"How often a line of figures is logged when something happened. 0s: never."`
}

// DisplayName returns the name with %H replaced by the given host name.
func (m Monitor) DisplayName(hostname string) string {
	return strings.ReplaceAll(m.Name, "%H", hostname)
}

// Log says what is logged, and how.
type Log struct {
	Level  string `toml:"level" default:"info" enum:"debug|info|warn|error" doc:"The least level that is logged."`
	Format string `toml:"format" default:"auto" enum:"auto|json" restart:"true" doc:"auto: fields for the journal under systemd, text elsewhere. json: one JSON object a line."`
}

// Daemon holds what concerns the process itself.
type Daemon struct {
	Drain time.Duration `toml:"drain" default:"20s" min:"0s" doc:"How long calls and handlers in flight may go on at a stop. Stay well below the unit's TimeoutStopSec (30s)."`
}

// SnapshotDir returns the folder for snapshots: backup.to, or snapshots/ beside
// the store.
func (c *Config) SnapshotDir() string {
	if c.Backup.To != "" {
		return c.Backup.To
	}
	return filepath.Join(filepath.Dir(c.Store.Path), "snapshots")
}

// Bot returns the bot of that name.
func (c *Config) Bot(name string) (Bot, bool) {
	for _, b := range c.Bots {
		if b.Name == name {
			return b, true
		}
	}
	return Bot{}, false
}

// Where returns the place where a file sets the key, given as the dotted path
// under which the file knows it ("store.path", "bots.home.token_file",
// "bots.home.handlers.0.exec"; elements count from 0). It is false for a key
// that no file sets.
func (c *Config) Where(path string) (Position, bool) {
	p, ok := c.where[path]
	return p, ok
}
