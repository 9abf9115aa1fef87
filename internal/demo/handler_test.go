package demo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/demo"
)

func TestHandle(t *testing.T) {
	const ours = `{"update_id":%,"message":{"message_id":1,"chat":{"id":7000000050,"type":"private"},"text":"hi"}}`
	for name, c := range map[string]struct {
		update, attempt string
		out             string
		err             error
	}{
		"one reply": {
			strings.Replace(ours, "%", "12", 1), "1",
			`{"method":"sendMessage","chat_id":7000000050,"text":"update 12, reply 1"}` + "\n", nil,
		},
		"two replies": {
			strings.Replace(ours, "%", "13", 1), "1",
			`{"method":"sendMessage","chat_id":7000000050,"text":"update 13, reply 1"}` + "\n" +
				`{"method":"sendMessage","chat_id":7000000050,"text":"update 13, reply 2"}` + "\n", nil,
		},
		"another kind is reported to one of the chats": {
			`{"update_id":210,"poll":{"id":"1"}}`, "1",
			`{"method":"sendMessage","chat_id":-1002000000011,"text":"update 210, reply 1"}` + "\n", nil,
		},
		"a stranger too": {
			`{"update_id":250,"message":{"chat":{"id":1}}}`, "1",
			`{"method":"sendMessage","chat_id":7000000051,"text":"update 250, reply 1"}` + "\n", nil,
		},
		"a bad moment": {
			strings.Replace(ours, "%", "40", 1), "1",
			`{"method":"sendMessage","chat_id":7000000050,"text":"update 40, reply 1"}` + "\n", demo.ErrTryAgain,
		},
		"and the moment after": {
			strings.Replace(ours, "%", "40", 1), "2",
			`{"method":"sendMessage","chat_id":7000000050,"text":"update 40, reply 1"}` + "\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := demo.Handle(strings.NewReader(c.update), &out, c.attempt); !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if out.String() != c.out {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), c.out)
			}
		})
	}
	if err := demo.Handle(strings.NewReader("no update"), &strings.Builder{}, "1"); err == nil || errors.Is(err, demo.ErrTryAgain) {
		t.Errorf("what is no update gave %v", err)
	}
}
