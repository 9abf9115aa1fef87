package setup

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
)

const (
	// pollFor is how long a poll is held open while nothing waits.
	pollFor = 25 * time.Second
	// pollEvery is the pause between two looks while other updates wait: they
	// can't be acknowledged, so that a long poll would return at once.
	pollEvery = 2 * time.Second
	// pollMost is how many updates Telegram shows at once. Behind as many of
	// others ours can't be seen.
	pollMost = 100
	// pollSlack is how much longer than the poll its answer may take.
	pollSlack = 10 * time.Second
	// pollPause is the pause after a call that failed for now.
	pollPause = 3 * time.Second
)

// Owner is who has sent the nonce.
type Owner struct {
	ID   int64
	Name string
}

// Nonce is a new secret for one link.
func Nonce() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails: the program would end
	return base64.RawURLEncoding.EncodeToString(b)
}

// Link is the address that opens the chat with a bot and sends the nonce there.
func Link(username, nonce string) string {
	return "https://t.me/" + username + "?start=" + nonce
}

// AwaitOwner waits until somebody sends the nonce to the bot in a private chat.
// It acknowledges no update of others. trouble hears of what fails meanwhile,
// once for each kind in a row. When ctx ends first, the error is FaultTime.
func AwaitOwner(ctx context.Context, c Caller, nonce string, trouble func(*Error)) (Owner, error) {
	long, last := true, Fault(0)
	for ctx.Err() == nil {
		updates, failed := look(ctx, c, long)
		switch {
		case ctx.Err() != nil:
		case failed == nil:
			last = 0
			if owner, first, found := find(updates, nonce); found {
				if first {
					confirm(ctx, c, updates[0].ID)
				}
				return owner, nil
			}
			if len(updates) >= pollMost {
				return Owner{}, crowded()
			}
			if long = len(updates) == 0; !long {
				pause(ctx, pollEvery)
			}
		case failed.Fault == FaultOffline || failed.Fault == FaultOther:
			if failed.Fault != last {
				trouble(failed)
			}
			last = failed.Fault
			pause(ctx, pollPause)
		default:
			return Owner{}, failed
		}
	}
	return Owner{}, &Error{
		FaultTime, "nobody has opened the link in time",
		"run it again, or name the owner's id with --owner, or do without one: --no-owner",
	}
}

// received is what matters of an update.
type received struct {
	ID      int64 `json:"update_id"`
	Message *struct {
		From *struct {
			ID        int64  `json:"id"`
			IsBot     bool   `json:"is_bot"`
			FirstName string `json:"first_name"`
			LastName  string `json:"last_name"`
		} `json:"from"`
		Chat struct {
			ID   int64  `json:"id"`
			Type string `json:"type"`
		} `json:"chat"`
		Text string `json:"text"`
	} `json:"message"`
}

// look asks for what waits, from the oldest on, and acknowledges nothing: there
// is no offset.
func look(ctx context.Context, c Caller, long bool) ([]received, *Error) {
	hold := time.Duration(0)
	if long {
		hold = pollFor
	}
	out, seen := getUpdates(ctx, c, map[string]int64{"limit": pollMost, "timeout": int64(hold / time.Second)}, hold+pollSlack)
	if out.Class != botapi.ClassOK {
		return nil, explain(out, seen)
	}
	raw, err := botapi.SplitUpdates(out.Result)
	if err != nil {
		return nil, &Error{FaultOther, "the answer to getUpdates holds no list of updates", ""}
	}
	updates := make([]received, len(raw))
	for i, one := range raw {
		// One that can't be read isn't ours.
		_ = json.Unmarshal(one, &updates[i])
	}
	return updates, nil
}

// confirm acknowledges one update and all before it.
func confirm(ctx context.Context, c Caller, id int64) {
	// When that fails the daemon finds the update, too: a /start like others.
	_, _ = getUpdates(ctx, c, map[string]int64{"offset": id + 1, "limit": 1, "timeout": 0}, pollSlack)
}

func getUpdates(ctx context.Context, c Caller, params map[string]int64, timeout time.Duration) (botapi.Outcome, botapi.Seen) {
	raw, err := json.Marshal(params)
	if err != nil {
		raw = nil // can't be: they are numbers
	}
	seen := c.Call(ctx, botapi.Request{Method: "getUpdates", Params: raw, Timeout: timeout})
	return botapi.Classify(botapi.MethodFor("getUpdates"), raw, seen), seen
}

// find looks for the nonce, and tells whether it is in the oldest update.
func find(updates []received, nonce string) (owner Owner, first, found bool) {
	for i, u := range updates {
		m := u.Message
		if m == nil || m.From == nil || m.From.IsBot || m.Chat.Type != "private" || m.Chat.ID != m.From.ID {
			continue
		}
		if m.Text == "/start "+nonce {
			return Owner{m.From.ID, strings.TrimSpace(m.From.FirstName + " " + m.From.LastName)}, i == 0, true
		}
	}
	return Owner{}, false, false
}

func conflict(description string) *Error {
	e := &Error{
		FaultConflict, "another process takes this bot's updates (409)",
		"is it tgspool itself, or an older program of yours? Stop it first, or name the owner's id with --owner",
	}
	if strings.Contains(strings.ToLower(description), "webhook") {
		e.Text = "a webhook is set for this bot, so that its updates go there (409)"
		e.Hint = "name the owner's id with --owner; the daemon takes over with take_over = true in [bots.NAME.intake]"
	}
	return e
}

func crowded() *Error {
	return &Error{
		FaultCrowded, "100 and more updates of others wait for this bot, and the one with the link's code can't be seen behind them",
		"run it again with --no-owner; when the daemon runs, write to the bot, look for your id with tgspool inbox list, and run it with --owner ID",
	}
}

// pause waits, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
