package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/config"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has changed (go test -update, and look at the difference):\n%s", path, got)
	}
}

// TestDefaults holds every default: a bot with a handler and a client, and
// nothing set that need not be.
func TestDefaults(t *testing.T) {
	cfg := load(t, `
[[bots.home.handlers]]
name = "a"
exec = ["/bin/true"]
allow_from = ["*"]
[[bots.home.clients]]
name = "c"
token_sha256 = "`+hash+`"
`)
	cfg.Path, cfg.Files = "", nil
	text, err := json.MarshalIndent(cfg, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "defaults", string(text)+"\n")
}

// documented is the whole list of keys that users may rely on.
const documented = `
store.path store.keep.done store.keep.handled store.keep.dead store.keep_size store.max_size store.max_upload store.on_damage
backup.to backup.at backup.keep
api.listen api.listen[].addr api.listen[].serve api.listen[].tls_cert api.listen[].tls_key
api.hosts api.webhook_hosts api.max_wait api.admin_token_file api.dashboard
monitor.name monitor.heartbeat_url monitor.heartbeat_interval monitor.offline_after monitor.oldest_pending monitor.stats_interval
log.level log.format daemon.drain
bots.NAME.chats bots.NAME.token_file bots.NAME.api_base bots.NAME.proxy bots.NAME.ip_family bots.NAME.unmatched bots.NAME.default_chat
bots.NAME.intake.mode bots.NAME.intake.poll_timeout bots.NAME.intake.allowed_updates bots.NAME.intake.take_over
bots.NAME.intake.url bots.NAME.intake.listen bots.NAME.intake.secret_file bots.NAME.intake.tls_cert bots.NAME.intake.tls_key
bots.NAME.sender.workers bots.NAME.sender.rate bots.NAME.sender.paid_rate bots.NAME.sender.chat_gap bots.NAME.sender.chat_burst
bots.NAME.sender.group_per_minute bots.NAME.sender.max_attempts bots.NAME.sender.on_uncertain bots.NAME.sender.uncertain_for
bots.NAME.sender.flood_scope bots.NAME.sender.ttl bots.NAME.sender.late_note bots.NAME.sender.request_timeout bots.NAME.sender.stall_timeout
bots.NAME.handlers[].name bots.NAME.handlers[].match.command bots.NAME.handlers[].match.kind bots.NAME.handlers[].match.chat
bots.NAME.handlers[].match.from bots.NAME.handlers[].match.text bots.NAME.handlers[].exec bots.NAME.handlers[].webhook
bots.NAME.handlers[].pull bots.NAME.handlers[].reply bots.NAME.handlers[].allow_from bots.NAME.handlers[].allow_chats
bots.NAME.handlers[].timeout bots.NAME.handlers[].attempts bots.NAME.handlers[].once bots.NAME.handlers[].max_age
bots.NAME.handlers[].late bots.NAME.handlers[].collapse bots.NAME.handlers[].parallel bots.NAME.handlers[].typing
bots.NAME.handlers[].ack bots.NAME.handlers[].on_error bots.NAME.handlers[].denied bots.NAME.handlers[].session
bots.NAME.handlers[].answer_callbacks bots.NAME.handlers[].secret_file bots.NAME.handlers[].max_connections
bots.NAME.clients[].name bots.NAME.clients[].token_sha256 bots.NAME.clients[].methods bots.NAME.clients[].chats bots.NAME.clients[].full
bots.NAME.clients[].lane bots.NAME.clients[].max_wait bots.NAME.clients[].on_uncertain bots.NAME.clients[].ttl bots.NAME.clients[].rate
bots.NAME.admin.chat bots.NAME.admin.users
`

func TestKeysAreTheDocumentedOnes(t *testing.T) {
	var got []string
	for _, k := range config.Keys() {
		got = append(got, k.Path)
	}
	want := strings.Fields(documented)
	for _, k := range want {
		if !slices.Contains(got, k) {
			t.Errorf("%s is no key", k)
		}
	}
	for _, k := range got {
		if !slices.Contains(want, k) {
			t.Errorf("%s is not documented", k)
		}
	}
}

func TestKeysAreDescribed(t *testing.T) {
	for _, k := range config.Keys() {
		if !strings.HasSuffix(k.Doc, ".") || strings.ToUpper(k.Doc[:1]) != k.Doc[:1] && !strings.HasPrefix(k.Doc, "auto: ") {
			t.Errorf("%s: not a sentence: %q", k.Path, k.Doc)
		}
		if k.Type == "" {
			t.Errorf("%s: no type", k.Path)
		}
		if len(k.Values) > 0 && k.Default != "" && !slices.Contains(k.Values, strings.Trim(k.Default, `"`)) {
			t.Errorf("%s: the default %s is not among %q", k.Path, k.Default, k.Values)
		}
	}
	for path, want := range map[string]config.Key{
		"store.max_size":       {Type: "size", Default: `"1GiB"`, Restart: true},
		"bots.NAME.proxy":      {Type: "string", Secret: true, Restart: true},
		"api.hosts":            {Type: "list of strings", Default: "[]"},
		"bots.NAME.admin.chat": {Type: "string", Default: `"me"`},
		"daemon.drain":         {Type: "duration", Default: `"20s"`},
		"bots.NAME.chats":      {Type: "table of chats"},
	} {
		i := slices.IndexFunc(config.Keys(), func(k config.Key) bool { return k.Path == path })
		got := config.Keys()[i]
		got.Path, got.Doc = "", ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %+v, want %+v", path, got, want)
		}
	}
}

// TestEveryFieldIsAKey: a field without a key would never be set, and one
// without a name of its own would be confusing.
func TestEveryFieldIsAKey(t *testing.T) {
	own := map[string]bool{"Path": true, "Files": true, "Name": true}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for f := range typ.Fields() {
			tag := f.Tag.Get("toml")
			if tag == "" {
				if f.IsExported() && !own[f.Name] {
					t.Errorf("%s.%s is no key", typ, f.Name)
				}
				continue
			}
			if strings.ReplaceAll(tag, "_", "") != strings.ToLower(f.Name) {
				t.Errorf("%s.%s is called %s", typ, f.Name, tag)
			}
			inner := f.Type
			if inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[config.Allow]() {
				walk(inner)
			}
		}
	}
	walk(reflect.TypeFor[config.Config]())
}

// uncomment takes away the sign in front of each setting of the example.
func uncomment(example string) string {
	var b strings.Builder
	for line := range strings.Lines(example) {
		if !strings.HasPrefix(line, "# ") {
			line = strings.TrimPrefix(line, "#")
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestExample(t *testing.T) {
	example := config.Example()
	for line := range strings.Lines(example) {
		if line != "\n" && !strings.HasPrefix(line, "#") {
			t.Errorf("not commented out: %s", line)
		}
	}
	cfg := load(t, uncomment(example))
	for _, p := range config.Check(cfg) {
		t.Errorf("the example itself: %v", p)
	}
	// Every key is in it: what is a table's last name stands at the start of a
	// line or in an inline table.
	for _, k := range config.Keys() {
		name := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
		if !strings.Contains(example, "\n#"+name+" = ") && !strings.Contains(example, "# "+name+": ") && !strings.Contains(example, "."+name+"]") {
			t.Errorf("%s is missing", k.Path)
		}
	}
	golden(t, "example", example)
}

// TestExampleSaysTheDefaults: whoever takes away the signs of the tables that
// are there without settings changes nothing.
func TestExampleSaysTheDefaults(t *testing.T) {
	tables, _, _ := strings.Cut(uncomment(config.Example()), "[bots.home]")
	got := load(t, tables)
	want := load(t, "[store]\n")
	if reload, restart := config.Diff(want, got); len(reload)+len(restart) > 0 {
		t.Errorf("differs in %q %q", reload, restart)
	}
}

// TestEveryKeyDecodes sets each key of the list to the value that the example
// has for it, and looks for the place that Load noted.
func TestEveryKeyDecodes(t *testing.T) {
	cfg := load(t, uncomment(config.Example())+`
[[bots.home.handlers]]
name = "more"
match = { kind = ["message"], chat = "me", from = ["me"], text = "^x" }
pull = true
`)
	for _, k := range config.Keys() {
		at := false
		for _, n := range []string{"0", "1", "2", "3"} {
			path := strings.NewReplacer("NAME", "home", "[]", "."+n).Replace(k.Path)
			if _, ok := cfg.Where(path); ok {
				at = true
			}
		}
		if !at && !strings.HasPrefix(k.Path, "api.listen[].tls_") {
			t.Errorf("%s was not decoded", k.Path)
		}
	}
}
