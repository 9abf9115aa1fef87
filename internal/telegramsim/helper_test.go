package telegramsim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

const token = "8001:sim-secret"

// reply is what came back for one call.
type reply struct {
	Status      int
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
	Header http.Header
	Raw    string // the body as it came
}

// message is what the tests read of a Message.
type message struct {
	ID   int64 `json:"message_id"`
	Chat struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	} `json:"chat"`
	Date     int64    `json:"date"`
	EditDate int64    `json:"edit_date"`
	Text     string   `json:"text"`
	Caption  string   `json:"caption"`
	ReplyTo  *message `json:"reply_to_message"`
	Album    string   `json:"media_group_id"`
	Photo    []struct {
		FileID string `json:"file_id"`
	} `json:"photo"`
	Document *struct {
		FileID string `json:"file_id"`
		Name   string `json:"file_name"`
		Size   int64  `json:"file_size"`
	} `json:"document"`
	Entities []struct {
		Type   string `json:"type"`
		Offset int    `json:"offset"`
		Length int    `json:"length"`
		URL    string `json:"url"`
	} `json:"entities"`
	Markup json.RawMessage `json:"reply_markup"`
	Origin *struct {
		Type string `json:"type"`
	} `json:"forward_origin"`
}

// args are the parameters of a call.
type args map[string]any

// newSim makes a simulator with one bot, closed at the end of the test.
func newSim(t *testing.T, opts telegramsim.Options) *telegramsim.Sim {
	t.Helper()
	if opts.Bots == nil {
		opts.Bots = []telegramsim.Bot{{Token: token, Username: "sim_bot"}}
	}
	s := telegramsim.New(opts)
	t.Cleanup(s.Close)
	return s
}

// roundTrip makes a call with a JSON body.
func roundTrip(ctx context.Context, rt http.RoundTripper, base, tok, method string, in args) (reply, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return reply{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/bot"+tok+"/"+method, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	return send(rt, request)
}

// send carries out a request and decodes the envelope where there is one.
func send(rt http.RoundTripper, request *http.Request) (reply, error) {
	response, err := rt.RoundTrip(request)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	out := reply{Status: response.StatusCode, Header: response.Header, Raw: string(text)}
	if err != nil {
		return out, err
	}
	if json.Unmarshal(text, &out) != nil {
		out.Result = text // no envelope: a page, a file or half an answer
	}
	return out, nil
}

// call makes a call in process and fails the test when there is no answer.
func call(t *testing.T, s *telegramsim.Sim, method string, in args) reply {
	t.Helper()
	out, err := roundTrip(t.Context(), s.Transport(), "https://bot.invalid", token, method, in)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return out
}

// must makes a call that has to succeed and decodes its result.
func must[T any](t *testing.T, s *telegramsim.Sim, method string, in args) T {
	t.Helper()
	out := call(t, s, method, in)
	if !out.OK || out.Status != 200 {
		t.Fatalf("%s: status %d: %s", method, out.Status, out.Description)
	}
	var result T
	if err := json.Unmarshal(out.Result, &result); err != nil {
		t.Fatalf("%s: decoding %s: %v", method, out.Result, err)
	}
	return result
}

// refused makes a call that has to fail in exactly this way.
func refused(t *testing.T, s *telegramsim.Sim, method string, in args, code int, description string) reply {
	t.Helper()
	out := call(t, s, method, in)
	if out.OK || out.Status != code || out.Code != code || out.Description != description {
		t.Fatalf("%s: got status %d, code %d, %q; want %d %q", method, out.Status, out.Code, out.Description, code, description)
	}
	return out
}

// updates polls once and returns the ids of what came.
func updates(t *testing.T, s *telegramsim.Sim, in args) []int64 {
	t.Helper()
	list := must[[]struct {
		ID int64 `json:"update_id"`
	}](t, s, "getUpdates", in)
	ids := make([]int64, 0, len(list))
	for _, u := range list {
		ids = append(ids, u.ID)
	}
	return ids
}
