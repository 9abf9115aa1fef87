package telegramsim

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// call is one request to one method on its way through the simulator.
type call struct {
	token  string
	test   bool
	name   string // the method as documented, or as it came when unknown
	params *params
	via    string // how it came, empty for a plain request

	// Filled in while it is carried out, under Sim.mu.
	bot         *bot
	chatID      int64
	made        []int64 // ids of the messages it made or changed
	description string  // of a success
	entry       int     // its number in the journal, 0 when it has none
}

// method is one entry of the method table.
type method struct {
	name string // as documented
	run  methodFunc
	// weight is how much the call counts against flood limits: 0 not at all,
	// 1 for the bot only, 2 for the bot and the chat.
	weight int
}

// methodFunc carries out a method with Sim.mu held.
type methodFunc func(s *Sim, c *call) (any, *apiError)

// made notes a message that a call made or changed.
func (c *call) touch(m *message) { c.made = append(c.made, m.id) }

// splitPath takes a request path apart. It reports false for anything that is
// no method call.
func splitPath(path string) (token string, test bool, name string, ok bool) {
	rest, found := strings.CutPrefix(path, "/bot")
	if !found {
		return "", false, "", false
	}
	token, name, found = strings.Cut(rest, "/")
	if !found {
		return "", false, "", false
	}
	if inner, isTest := strings.CutPrefix(name, "test/"); isTest {
		test, name = true, inner
	}
	return token, test, strings.TrimSuffix(name, "/"), true
}

// readCall reads a request. It returns an answer instead when the request can't
// be read.
func (s *Sim) readCall(r *http.Request) (*call, *answer) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		a := bare(http.StatusNotImplemented)
		return nil, &a
	}
	token, test, name, ok := splitPath(r.URL.Path)
	if !ok {
		a := refusal(failure(404, "Not Found"))
		return nil, &a
	}
	p, err := readParams(r)
	switch {
	case errors.Is(err, errTooLarge):
		a := bare(http.StatusRequestEntityTooLarge)
		return nil, &a
	case err != nil:
		a := bare(http.StatusBadRequest)
		return nil, &a
	}
	if name == "" {
		name = p.get("method")
	}
	c := &call{token: token, test: test, name: name, params: p}
	if m, known := s.methods[strings.ToLower(name)]; known {
		c.name = m.name
	}
	return c, nil
}

// perform carries a call out, writes it into the journal and returns the
// answer. The last result is false when the caller went away while it waited.
func (s *Sim) perform(ctx context.Context, c *call) (answer, bool) {
	m, known := s.methods[strings.ToLower(c.name)]
	start := time.Now()
	s.mu.Lock()
	bot, failed := s.authLocked(c)
	c.bot = bot
	s.mu.Unlock()
	if failed == nil && known && m.name == "getUpdates" {
		updates, failed, there := s.getUpdates(ctx, c)
		s.logCall(ctx, c, start, failed)
		if failed != nil {
			return refusal(failed), there
		}
		a := jsonAnswer(200, nil)
		a.body = updates.raw()
		return a, there
	}
	if failed == nil && m.weight > 0 {
		if !s.pause(ctx, s.absorb(c, m.weight)) {
			return answer{}, false
		}
	}
	a, failed := s.carryOut(c, m, failed)
	s.logCall(ctx, c, start, failed)
	return a, true
}

// carryOut runs a method under the lock, so that its effect and its journal
// entry are one.
func (s *Sim) carryOut(c *call, m method, failed *apiError) (answer, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var result any
	if failed == nil {
		result, failed = s.runLocked(c, m)
	}
	if failed != nil {
		s.recordLocked(c, failed.code, false)
		return refusal(failed), failed
	}
	s.recordLocked(c, http.StatusOK, !strings.HasPrefix(c.name, "get"))
	return success(result, c.description), nil
}

// runLocked checks what all methods have in common and runs the method.
func (s *Sim) runLocked(c *call, m method) (any, *apiError) {
	if m.run == nil {
		return nil, failure(404, "Not Found: method not found")
	}
	for _, value := range c.params.text {
		if !utf8.ValidString(value) {
			return nil, badRequest("strings must be encoded in UTF-8")
		}
	}
	if ch, err := s.findChatLocked(c.params.get("chat_id")); err == nil {
		c.chatID = ch.id
	}
	if failed := s.floodLocked(c, m.weight); failed != nil {
		return nil, failed
	}
	return m.run(s, c)
}

// logCall writes one debug line. It holds no text and no token.
func (s *Sim) logCall(ctx context.Context, c *call, start time.Time, failed *apiError) {
	code := http.StatusOK
	if failed != nil {
		code = failed.code
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "call carried out",
		slog.String("method", c.name),
		slog.Int64("chat_id", c.chatID),
		slog.Int("code", code),
		slog.Duration("duration", time.Since(start)),
	)
}
