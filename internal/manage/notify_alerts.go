package manage

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// maxAlerts is how many alerts of one body are written out.
const maxAlerts = 20

// message is the body of a notification: {"text":…}, or apprise's title, message
// and type, or those of Grafana and alertmanager with alerts. Others' bodies have
// more members than these, which don't matter here.
type message struct {
	Text    string          `json:"text"`
	Title   string          `json:"title"`
	Message string          `json:"message"`
	Body    string          `json:"body"`
	Type    string          `json:"type"` // apprise: info | success | warning | failure
	Chat    json.RawMessage `json:"chat"`

	Attachments []json.RawMessage `json:"attachments"` // apprise

	Alerts    []alert `json:"alerts"`          // alertmanager, Grafana
	Truncated int     `json:"truncatedAlerts"` // that were left out there
}

// alert is one alert of alertmanager or Grafana.
type alert struct {
	Status       string         `json:"status"` // firing | resolved
	Labels       map[string]any `json:"labels"`
	Annotations  map[string]any `json:"annotations"`
	GeneratorURL string         `json:"generatorURL"`
	DashboardURL string         `json:"dashboardURL"` // Grafana
	PanelURL     string         `json:"panelURL"`     // Grafana
}

// readNoteJSON reads a notification that is a JSON object.
func readNoteJSON(body []byte) (note, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return note{}, problemf(http.StatusUnprocessableEntity, "%q can't be a %s", wrong.Field, wrong.Value)
		}
		return note{}, problemf(http.StatusBadRequest, "the JSON is malformed: %s", err)
	}
	if len(m.Alerts) > 0 {
		return note{text: m.alerts(), chat: m.chat(), noPreview: true}, nil
	}
	return m.note(len(m.Attachments)), nil
}

// marks are put before a title by apprise's type.
var marks = map[string]string{"success": "✅ ", "warning": "⚠️ ", "failure": "❌ "}

func (m message) note(attached int) note {
	var lines []string
	for _, text := range []string{m.Title, m.Text, m.Message, m.Body} {
		if text = strings.TrimSpace(text); text != "" {
			lines = append(lines, text)
		}
	}
	if len(lines) == 0 {
		return note{}
	}
	text := marks[m.Type] + strings.Join(lines, "\n")
	if attached > 0 {
		text += fmt.Sprintf("\n(attachments that were left out: %d)", attached)
	}
	return note{text: text, chat: m.chat()}
}

// chat may be an id that is written as the number that it is.
func (m message) chat() string {
	var s string
	if json.Unmarshal(m.Chat, &s) == nil {
		return s
	}
	return string(m.Chat)
}

// alerts writes alerts for people, the firing ones first.
func (m message) alerts() string {
	list := slices.Clone(m.Alerts)
	slices.SortStableFunc(list, func(x, y alert) int { return x.rank() - y.rank() })
	more := m.Truncated + max(0, len(list)-maxAlerts)
	var texts []string
	for _, a := range list[:min(len(list), maxAlerts)] {
		texts = append(texts, a.text())
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(texts, "\n\n")
}

func (a alert) rank() int {
	if a.Status == "resolved" {
		return 1
	}
	return 0
}

// text is one alert: its name, what it says, its labels, a link.
func (a alert) text() string {
	head := "🔥 FIRING: "
	if a.Status == "resolved" {
		head = "✅ RESOLVED: "
	}
	name := value(a.Labels, "alertname")
	if name == "" {
		name = "alert"
	}
	lines := []string{head + name}
	for _, key := range []string{"summary", "description", "message"} {
		if s := value(a.Annotations, key); s != "" {
			lines = append(lines, s)
		}
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(a.Labels)) {
		if key != "alertname" && !strings.HasPrefix(key, "__") {
			labels = append(labels, key+"="+value(a.Labels, key))
		}
	}
	if len(labels) > 0 {
		lines = append(lines, strings.Join(labels, ", "))
	}
	for _, link := range []string{a.PanelURL, a.DashboardURL, a.GeneratorURL} {
		if strings.HasPrefix(link, "http") {
			lines = append(lines, link)
			break
		}
	}
	return strings.Join(lines, "\n")
}

// value is a label or annotation as text; "" when there is none.
func value(of map[string]any, key string) string {
	switch v := of[key].(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	default:
		return fmt.Sprint(v)
	}
}
