package setup

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
)

// Caller makes calls of the Bot API; a *botapi.Client.
type Caller interface {
	Call(ctx context.Context, r botapi.Request) botapi.Seen
}

// Account is whose token it is.
type Account struct {
	ID       int64
	Username string // without @
	Name     string
}

// Fault is what a call came to that can't go on.
type Fault int

// The faults.
const (
	FaultRefused  Fault = iota + 1 // Telegram doesn't know the token
	FaultOffline                   // Telegram can't be reached
	FaultClock                     // this machine's clock is wrong
	FaultConflict                  // somebody else takes the updates
	FaultCrowded                   // too many other updates wait
	FaultTime                      // nobody came in time
	FaultOther
)

// Error says what is wrong in a line, and what can be done about it.
type Error struct {
	Fault Fault
	Text  string
	Hint  string
}

// Error returns the text alone.
func (e *Error) Error() string { return e.Text }

// askTimeout bounds getMe, in which somebody waits at a terminal.
const askTimeout = 20 * time.Second

// Ask finds out whose token the client has.
func Ask(ctx context.Context, c Caller) (Account, error) {
	m := botapi.MethodFor("getMe")
	seen := c.Call(ctx, botapi.Request{Method: m.Name, Timeout: askTimeout})
	out := botapi.Classify(m, nil, seen)
	if out.Class != botapi.ClassOK {
		return Account{}, explain(out, seen)
	}
	var me struct {
		ID        int64  `json:"id"`
		IsBot     bool   `json:"is_bot"`
		FirstName string `json:"first_name"`
		Username  string `json:"username"`
	}
	if err := json.Unmarshal(out.Result, &me); err != nil || me.ID == 0 || me.Username == "" {
		return Account{}, &Error{FaultOther, "the answer to getMe says nothing of a bot", "is api_base a Bot API server?"}
	}
	return Account{ID: me.ID, Username: me.Username, Name: me.FirstName}, nil
}

// explain finds words for a call that failed.
func explain(out botapi.Outcome, seen botapi.Seen) *Error {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(seen.Err, &invalid) && invalid.Reason == x509.Expired:
		return &Error{
			FaultClock, "the server's certificate isn't valid at this machine's time, " + time.Now().Format("2006-01-02 15:04 MST"),
			"set the clock: timedatectl set-ntp true, or date -s; then run this again",
		}
	case out.Class == botapi.ClassUnauthorized, out.Code == 404 && out.Class == botapi.ClassRejected:
		return &Error{FaultRefused, "Telegram doesn't know this token", "@BotFather shows the present one: /mybots, the bot, API Token"}
	case out.Conflict:
		return conflict(out.Description)
	case out.Class == botapi.ClassOffline, out.Class == botapi.ClassNotTelegram, out.Class == botapi.ClassUnknownOutcome:
		return &Error{
			FaultOffline, "Telegram can't be reached: " + out.Description,
			"check the network; behind a proxy: sudo HTTPS_PROXY=http://proxy:3128 tgspool setup",
		}
	}
	return &Error{FaultOther, fmt.Sprintf("Telegram answers %d: %s", out.Code, out.Description), ""}
}
