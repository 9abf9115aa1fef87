package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	rate    = 25
	chatGap = 1050 * time.Millisecond // the settings' default
	replies = 100
)

// broadcast sends one message to many chats in real time, at the default rate,
// to a simulator that answers 429 to whoever goes too fast. Meanwhile chats
// that have just got the message or will soon get it are replied to.
func (b *bench) broadcast() error {
	sim := telegramsim.New(telegramsim.Options{
		Bots: []telegramsim.Bot{{Token: token}}, Strict: telegramsim.DefaultLimits(),
	})
	defer sim.Close()
	bot, stop, err := b.station(sim.Transport())
	if err != nil {
		return err
	}
	fmt.Printf("   %d chats and %d replies at %d a second: %v\n", b.chats, replies, rate,
		time.Duration(b.chats+replies)*time.Second/rate)
	err = b.announce(bot)
	var turns map[int64]time.Time
	if err == nil {
		turns, err = b.reply(bot)
	}
	if err == nil {
		err = b.arrive(sim, b.chats+replies)
	}
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	journal := sim.Journal()
	refused := 0
	for _, a := range journal {
		if a.Status == http.StatusTooManyRequests {
			refused++
		}
	}
	b.atMost("broadcast: answers 429", float64(refused), 0, "")
	span := journal[len(journal)-1].At.Sub(journal[0].At).Seconds()
	b.atLeast("broadcast: share of the rate used", 100*float64(len(journal)-gate.MaxBurst)/rate/span, 98, " %")
	b.atMost("broadcast: longest wait of a reply past its turn", latest(journal, turns).Seconds()*1000, 250, " ms")
	return nil
}

// station is a spool with a sender at the default settings.
func (b *bench) station(transport http.RoundTripper) (bot *spool.Bot, stop func() error, err error) {
	tok, err := botapi.ParseToken(token)
	if err != nil {
		return nil, nil, err
	}
	client, err := botapi.NewClient(botapi.Config{Token: tok, Transport: transport})
	if err != nil {
		return nil, nil, err
	}
	store, err := spool.Open(b.ctx, spool.Options{Path: filepath.Join(b.dir, "broadcast", "spool.db")})
	if err != nil {
		return nil, nil, err
	}
	g := gate.New(gate.Config{Rate: rate})
	bot, err = store.Attach(b.ctx, spool.BotConfig{
		ID: client.BotID(), Name: "bench", Limits: spool.Limits{ChatGap: chatGap, ChatBurst: 1, GroupPerMinute: 20},
		Admit:  func(now time.Time, lane spool.Lane) (bool, time.Time) { return g.Admit(now, string(lane)) },
		Refund: g.Refund,
	})
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	g.OnOpen(bot.Kick)
	s := sender.New(sender.Config{Bot: bot, Client: client, Gate: g})
	take, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(take, context.Background()) }()
	return bot, func() error {
		cancel()
		return errors.Join(<-ended, store.Close())
	}, nil
}

func (b *bench) announce(bot *spool.Bot) error {
	list := make([]spool.NewJob, b.chats)
	for i := range list {
		var err error
		if list[i], err = message(firstChat+int64(i), "announcement", spool.Bulk); err != nil {
			return err
		}
	}
	for n := 0; n < len(list); n += 500 {
		if _, err := bot.Enqueue(b.ctx, list[n:min(n+500, len(list))]...); err != nil {
			return err
		}
	}
	return nil
}

func message(chat int64, text string, lane spool.Lane) (spool.NewJob, error) {
	params := fmt.Appendf(nil, `{"chat_id":%d,"text":%q}`, chat, text)
	return outbox.New("sendMessage", json.RawMessage(params), outbox.Options{Lane: lane, Origin: "bench"})
}

const firstChat = 7_000_000_000

// reply queues the replies, spread over the first nine tenths of the broadcast:
// one goes to where the broadcast has just been, the next to where it comes
// late. It returns when the reply to each chat was accepted.
func (b *bench) reply(bot *spool.Bot) (map[int64]time.Time, error) {
	all := time.Duration(b.chats) * time.Second / rate
	tick := time.NewTicker(all * 9 / 10 / replies)
	defer tick.Stop()
	accepted := map[int64]time.Time{}
	for i := range replies {
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			return nil, b.ctx.Err()
		}
		chat := firstChat + int64(b.chats*i*9/10/replies)
		if i%2 == 1 {
			chat = firstChat + int64(b.chats-1-i/2)
		}
		job, err := message(chat, "reply", spool.Interactive)
		if err != nil {
			return nil, err
		}
		if _, err := bot.Enqueue(b.ctx, job); err != nil {
			return nil, err
		}
		accepted[chat] = time.Now()
	}
	return accepted, nil
}

// arrive waits until n calls have arrived.
func (b *bench) arrive(sim *telegramsim.Sim, n int) error {
	for {
		more := sim.Arrived()
		if len(sim.JournalAfter(n-1)) > 0 {
			return nil
		}
		select {
		case <-more:
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
}

// latest is the longest time from a reply's turn at its chat's gate, which is
// when it was accepted or, if that is later, when the gap after the message
// before it was over, to its arrival.
func latest(journal []telegramsim.Arrival, accepted map[int64]time.Time) (longest time.Duration) {
	before := map[int64]time.Time{}
	for _, a := range journal {
		if a.Text == "reply" {
			turn := accepted[a.ChatID]
			if open := before[a.ChatID].Add(chatGap); open.After(turn) {
				turn = open
			}
			longest = max(longest, a.At.Sub(turn))
		}
		before[a.ChatID] = a.At
	}
	return longest
}
