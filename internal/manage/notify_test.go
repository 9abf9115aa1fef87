package manage_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/tgspool/tgspool/internal/spool"
)

// sent is what a notification has become.
type sent struct {
	Chat    json.RawMessage `json:"chat_id"`
	Text    string          `json:"text"`
	Silent  bool            `json:"disable_notification"`
	Parse   string          `json:"parse_mode"`
	Preview struct {
		Off bool `json:"is_disabled"`
	} `json:"link_preview_options"`
}

func sentAs(t *testing.T, j spool.Job) (s sent) {
	t.Helper()
	if j.Method != "sendMessage" || json.Unmarshal(j.Params, &s) != nil {
		t.Fatalf("job %s %s", j.Method, j.Params)
	}
	return s
}

const grafana = `{"receiver":"tgspool","status":"firing","orgId":1,"title":"[FIRING:1] x","message":"**Firing**\nlong","state":"alerting",
 "alerts":[{"status":"firing","labels":{"alertname":"Disk <full>","instance":"pi4","grafana_folder":"Home"},
  "annotations":{"summary":"97 % used","description":"/ is nearly full"},"startsAt":"2026-01-02T03:04:05Z","endsAt":"0001-01-01T00:00:00Z",
  "generatorURL":"http://pi4:3000/g","panelURL":"http://pi4:3000/p","fingerprint":"c6e","values":{"A":97.1,"B":null},"valueString":"[x]"}]}`

const alertmanager = `{"version":"4","groupKey":"{}:{}","truncatedAlerts":3,"status":"firing","receiver":"tg","groupLabels":{},"commonLabels":{},
 "commonAnnotations":{},"externalURL":"http://am","alerts":[
 {"status":"resolved","labels":{"alertname":"Up"},"annotations":{},"generatorURL":""},
 {"status":"firing","labels":{"alertname":"Load","n":3,"__tmp":"x"},"annotations":{"summary":"load < 10%"},"generatorURL":"http://prom/g"}]}`

func TestNotify_Forms(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	multi := "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nBackup\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\ndone\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file01\"; filename=\"a.png\"\r\n\r\nxxx\r\n--b--\r\n"
	tests := []struct{ name, kind, body, chat, text string }{
		{"plain", "text/plain; charset=utf-8", " Backup done <ok>\n", "12345", "Backup done <ok>"},
		{"without a type", "", "Backup done", "12345", "Backup done"},
		{"curl -d", form, "Backup 100% done & well", "12345", "Backup 100% done & well"},
		{"text", "application/json", `{"text":"hi","chat":"family"}`, "-1001234567890", "hi"},
		{"a chat as a number", "application/json", `{"text":"hi","chat":-5}`, "-5", "hi"},
		{"no UTF-8", "text/plain", "caf\xe9", "12345", "caf\uFFFD"},
		{"apprise", "application/json", `{"version":"1.0","title":"Disk","message":"is full","attachments":[],"type":"failure"}`, "12345", "❌ Disk\nis full"},
		{"apprise with a file", "application/json", `{"title":"","message":"look","attachments":[{"filename":"a","base64":""}],"type":"info"}`, "12345", "look\n(attachments that were left out: 1)"},
		{"apprise's form", form, "version=1.0&title=Disk&message=is+full&type=warning", "12345", "⚠️ Disk\nis full"},
		{"apprise's form with a file", "multipart/form-data; boundary=b", multi, "12345", "Backup\ndone\n(attachments that were left out: 1)"},
		{"Grafana", "application/json", grafana, "12345", "🔥 FIRING: Disk <full>\n97 % used\n/ is nearly full\ngrafana_folder=Home, instance=pi4\nhttp://pi4:3000/p"},
		{"alertmanager", "application/json", alertmanager, "12345", "🔥 FIRING: Load\nload < 10%\nn=3\nhttp://prom/g\n\n✅ RESOLVED: Up\n\n… and 3 more"},
		{"Grafana of old", "application/json", `{"title":"[Alerting] x","message":"boom","state":"alerting","ruleUrl":"http://x","evalMatches":[]}`, "12345", "[Alerting] x\nboom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			job := into[spool.Job](t, w.do("POST", "/v1/bots/home/notify", tt.kind, tt.body), http.StatusCreated)
			s := sentAs(t, job)
			if string(s.Chat) != tt.chat || s.Text != tt.text || s.Parse != "" {
				t.Errorf("to %s: %q, want to %s: %q", s.Chat, s.Text, tt.chat, tt.text)
			}
			if s.Preview.Off != strings.Contains(tt.text, "http://") {
				t.Errorf("preview off: %v", s.Preview.Off)
			}
		})
	}
}

func TestNotify_Query(t *testing.T) {
	w := newWorld(t)
	job := into[spool.Job](t, w.do("POST", "/v1/bots/home/notify?chat=news&silent=true&lane=bulk&ttl=1h&dedupe_key=k", "", "x"), http.StatusCreated)
	if s := sentAs(t, job); string(s.Chat) != `"@TheNews"` || !s.Silent || job.Lane != spool.Bulk || job.ExpiresAt == nil || *job.DedupeKey != "k" {
		t.Errorf("job %+v, %+v", job, s)
	}
	again := w.do("POST", "/v1/bots/home/notify?dedupe_key=k", "", "other")
	if into[spool.Job](t, again, http.StatusOK).ID != job.ID {
		t.Errorf("again: %s", again.body)
	}
}

// postedJob is the answer to a posted job.
type postedJob struct {
	spool.Job
	Duplicate bool
	Parts     []int64
}

// TestNotify_Long: one text, several messages, in order, none lost, all or none.
func TestNotify_Long(t *testing.T) {
	w := newWorld(t)
	line := strings.Repeat("😀 wörd ", 100)
	text := strings.TrimSpace(strings.Repeat(line+"\n", 12))
	got := into[postedJob](t, w.do("POST", "/v1/bots/home/notify?dedupe_key=k", "text/plain", text), http.StatusCreated)
	var words []string
	for _, id := range got.Parts {
		j := into[spool.Job](t, w.get("/v1/jobs/"+strconv.FormatInt(id, 10)), http.StatusOK)
		part := sentAs(t, j).Text
		if n := len(utf16.Encode([]rune(part))); n > 4096 || strings.ContainsRune(part, '\uFFFD') {
			t.Errorf("a part of %d units", n)
		}
		words = append(words, strings.Fields(part)...)
	}
	if len(got.Parts) != 3 || got.Parts[0] != got.ID || strings.Join(words, " ") != strings.Join(strings.Fields(text), " ") {
		t.Errorf("parts %d, %d words", got.Parts, len(words))
	}
	again := into[postedJob](t, w.do("POST", "/v1/bots/home/notify?dedupe_key=k", "text/plain", text), http.StatusOK)
	if !again.Duplicate || again.ID != got.ID || !slices.Equal(again.Parts, got.Parts) {
		t.Errorf("again: %+v", again)
	}
	if a := w.do("POST", "/v1/bots/home/notify", "text/plain", strings.Repeat("x", 4096*20+1)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a text without end: %d %s", a.status, a.body)
	}
}

func TestNotify_Refused(t *testing.T) {
	w := newWorld(t)
	tests := []struct {
		path, kind, body string
		status           int
		want             string
	}{
		{"home/notify", "", "", 422, "there is no text"},
		{"home/notify", "text/plain", " \n", 422, "there is no text"},
		{"home/notify", "application/json", `{}`, 422, "there is no text"},
		{"home/notify", "application/json", `{"alerts":[]}`, 422, "there is no text"},
		{"home/notify", "application/json", `{"text":5}`, 422, `"text" can't be a number`},
		{"home/notify", "application/json", `[1]`, 400, "malformed"},
		{"home/notify", "application/json", `{"text":"x"`, 400, "malformed"},
		{"home/notify", "multipart/form-data", "x", 400, "form"},
		{"home/notify", "multipart/form-data; boundary=b", "--b\r\nhalf", 400, "form"},
		{"home/notify", "image/png", "x", 415, "image/png"},
		{"home/notify", ";;", "x", 415, "content type"},
		{"home/notify", "", strings.Repeat("x", 1<<20+1), 413, "larger"},
		{"home/notify?chat=nobody", "", "x", 422, "nobody"},
		{"home/notify?lane=fast", "", "x", 422, "fast"},
		{"home/notify?ttl=soon", "", "x", 400, "ttl"},
		{"home/notify?silent=maybe", "", "x", 400, "silent"},
		{"home/notify?urgent=1", "", "x", 400, "urgent"},
		{"none/notify", "", "x", 404, "none"},
		{"away/notify", "", "x", 409, "away"},
	}
	for _, tt := range tests {
		a := w.do("POST", "/v1/bots/"+tt.path, tt.kind, tt.body)
		if a.status != tt.status || !strings.Contains(string(a.body), strings.ReplaceAll(tt.want, `"`, `\"`)) {
			t.Errorf("%s %s %.20q: %d %s; want %d and %q", tt.path, tt.kind, tt.body, a.status, a.body, tt.status, tt.want)
		}
	}
	if all := into[list](t, w.get("/v1/bots/home/jobs"), http.StatusOK); len(all.Items) != 0 {
		t.Errorf("%d jobs were taken", len(all.Items))
	}
}
