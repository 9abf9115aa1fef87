package telegramsim_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// hookFunc is a webhook receiver without sockets.
type hookFunc func(r *http.Request, body string) *http.Response

// RoundTrip gives the request to the function.
func (f hookFunc) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, errors.New("connection refused")
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return f(r, string(body)), nil
}

// status makes an answer of a webhook.
func status(code int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// deliveries notes when which text was pushed.
type deliveries struct {
	mu   sync.Mutex
	when map[string][]time.Duration
}

// note keeps the time of one delivery since the start, in whole seconds.
func (d *deliveries) note(start time.Time, body string) {
	var u struct {
		Message struct {
			Text string `json:"text"`
		} `json:"message"`
	}
	_ = json.Unmarshal([]byte(body), &u)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.when == nil {
		d.when = make(map[string][]time.Duration)
	}
	d.when[u.Message.Text] = append(d.when[u.Message.Text], time.Since(start).Truncate(time.Second))
}

// of returns the times of one text.
func (d *deliveries) of(text string) []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.when[text])
}

func TestWebhookBacksOffAndBlocksItsOwnKeyOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got deliveries
		start := time.Now()
		s := newSim(t, telegramsim.Options{Push: hookFunc(func(r *http.Request, body string) *http.Response {
			got.note(start, body)
			if r.Header.Get("X-Telegram-Bot-Api-Secret-Token") != "s3cret" {
				return status(500, "")
			}
			if strings.Contains(body, "bad") && time.Since(start) < 20*time.Second {
				return status(302, "", "Location", "http://elsewhere.invalid/")
			}
			return status(204, "")
		})})
		must[bool](t, s, "setWebhook", args{"url": "http://hook.invalid/x", "secret_token": "s3cret"})
		s.FeedText(5, 5, "bad")
		s.FeedText(5, 5, "behind")
		s.FeedText(6, 6, "beside")
		time.Sleep(time.Hour)
		s.Close()

		second := time.Second
		if want := []time.Duration{0, 0, 2 * second, 6 * second, 14 * second, 30 * second}; !slices.Equal(got.of("bad"), want) {
			t.Errorf("the failing update was tried at %v, want %v", got.of("bad"), want)
		}
		if want := []time.Duration{30 * second}; !slices.Equal(got.of("behind"), want) {
			t.Errorf("the one behind it came at %v, want %v", got.of("behind"), want)
		}
		if want := []time.Duration{0}; !slices.Equal(got.of("beside"), want) {
			t.Errorf("another chat's came at %v, want %v", got.of("beside"), want)
		}
	})
}

func TestWebhookHonoursRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got deliveries
		start := time.Now()
		s := newSim(t, telegramsim.Options{Push: hookFunc(func(_ *http.Request, body string) *http.Response {
			got.note(start, body)
			if time.Since(start) < time.Second {
				return status(503, "", "Retry-After", "77")
			}
			return status(200, "")
		})})
		must[bool](t, s, "setWebhook", args{"url": "http://hook.invalid/x"})
		s.FeedText(5, 5, "x")
		time.Sleep(10 * time.Second)
		info := must[struct {
			Pending int    `json:"pending_update_count"`
			Message string `json:"last_error_message"`
			Date    int64  `json:"last_error_date"`
		}](t, s, "getWebhookInfo", args{})
		if info.Pending != 1 || info.Message != "Wrong response from the webhook: 503 Service Unavailable" || info.Date == 0 {
			t.Errorf("getWebhookInfo: %+v", info)
		}
		time.Sleep(time.Hour)
		s.Close()
		if want := []time.Duration{0, 77 * time.Second}; !slices.Equal(got.of("x"), want) {
			t.Errorf("tried at %v, want %v", got.of("x"), want)
		}
	})
}

func TestWebhookDropsWhatExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Push: hookFunc(nil)})
		must[bool](t, s, "setWebhook", args{"url": "http://hook.invalid/x"})
		s.Feed(0, json.RawMessage(`{"inline_query":{"id":"1","from":{"id":5},"query":""}}`))
		time.Sleep(time.Minute)
		if n := s.Pending(0); n != 0 {
			t.Errorf("%d pending, want the inline query gone after 30 s", n)
		}
		s.Close()
	})
}

func TestMethodInWebhookReply(t *testing.T) {
	bodies := map[string][2]string{
		"json": {"application/json", `{"method":"sendMessage","chat_id":5,"text":"pong"}`},
		"form": {"application/x-www-form-urlencoded", `method=SENDMESSAGE&chat_id=5&text=pong`},
		"multipart": {"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"method\"\r\n\r\nsendMessage\r\n" +
			"--b\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n5\r\n" +
			"--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\npong\r\n--b--\r\n"},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, telegramsim.Options{Push: hookFunc(func(*http.Request, string) *http.Response {
					return status(200, body[1], "Content-Type", body[0])
				})})
				must[bool](t, s, "setWebhook", args{"url": "http://hook.invalid/x"})
				s.FeedText(5, 5, "ping")
				synctest.Wait()
				if n := s.CountText(5, "pong"); n != 1 {
					t.Errorf("the reply was sent %d times, want once", n)
				}
				j := s.Journal()
				if last := j[len(j)-1]; last.Via != "webhook" || last.Method != "sendMessage" {
					t.Errorf("on record: %+v", last)
				}
				s.Close()
			})
		})
	}
}

func TestMethodInWebhookReplyThatIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Push: hookFunc(func(*http.Request, string) *http.Response {
			return status(200, `{"method":"deleteWebhook"}`, "Content-Type", "application/json")
		})})
		must[bool](t, s, "setWebhook", args{"url": "http://hook.invalid/x"})
		s.FeedText(5, 5, "ping")
		synctest.Wait()
		info := must[struct{ URL string }](t, s, "getWebhookInfo", args{})
		if info.URL == "" {
			t.Error("a reply removed the webhook")
		}
		s.Close()
	})
}

func TestSetWebhook(t *testing.T) {
	s := newSim(t, telegramsim.Options{Push: hookFunc(nil)})
	for _, step := range []struct {
		in   args
		want string
	}{
		{args{"url": "http://hook.invalid/x"}, "Webhook was set"},
		{args{"url": "http://hook.invalid/x"}, "Webhook is already set"},
		{args{"url": "http://hook.invalid/x", "max_connections": 5}, "Webhook was set"},
		{args{"url": ""}, "Webhook was deleted"},
		{args{}, "Webhook is already deleted"},
	} {
		if got := call(t, s, "setWebhook", step.in); got.Description != step.want || string(got.Result) != "true" {
			t.Errorf("%v: got %s %q, want true %q", step.in, got.Result, got.Description, step.want)
		}
	}
	refused(t, s, "setWebhook", args{"url": "no url"}, 400, "Bad Request: invalid webhook URL specified")
	refused(t, s, "setWebhook", args{"url": "http://h.invalid", "secret_token": "a b"}, 400,
		"Bad Request: secret token contains unallowed characters")
	s.FeedText(5, 5, "x")
	must[bool](t, s, "deleteWebhook", args{"drop_pending_updates": true})
	if s.Pending(0) != 0 {
		t.Error("drop_pending_updates dropped nothing")
	}
}
