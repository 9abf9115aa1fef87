package telegramsim

import (
	"encoding/json"
	"maps"
	"time"
)

const (
	queryLife       = 150 * time.Second // callback and shipping queries
	inlineLife      = 30 * time.Second
	preCheckoutLife = 10 * time.Second // to be answered within, though kept longer
)

// query is a question that can be answered for a while.
type query struct {
	kind  string
	until time.Time
}

// keptQueries is how many queries are remembered before old ones are tidied.
const keptQueries = 10_000

// forgetQueriesLocked drops queries that nobody can answer any more, now and
// then, so that a simulator that runs for weeks does not grow by them.
func (s *Sim) forgetQueriesLocked() {
	if len(s.queries) < keptQueries {
		return
	}
	now := time.Now()
	maps.DeleteFunc(s.queries, func(_ string, q *query) bool { return now.After(q.until) })
}

// answerLife is how long the queries of a kind can be answered, and whether the
// kind is a query at all.
func answerLife(kind string) (time.Duration, bool) {
	switch kind {
	case "callback_query", "shipping_query":
		return queryLife, true
	case "pre_checkout_query":
		return preCheckoutLife, true
	case "inline_query":
		return inlineLife, true
	}
	return 0, false
}

// answerQuery is the method that answers queries of one kind.
func answerQuery(kind, parameter string) methodFunc {
	return func(s *Sim, c *call) (any, *apiError) {
		q := s.queries[c.params.get(parameter)]
		if q == nil || q.kind != kind || time.Now().After(q.until) {
			return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
		}
		if len([]rune(c.params.get("text"))) > 200 {
			return nil, badRequest("MESSAGE_TOO_LONG")
		}
		return true, nil
	}
}

// methodAnswerInlineQuery answers answerInlineQuery.
func methodAnswerInlineQuery(s *Sim, c *call) (any, *apiError) {
	var results []json.RawMessage
	if json.Unmarshal([]byte(c.params.get("results")), &results) != nil {
		return nil, badRequest("can't parse inline query results JSON object")
	}
	if len(results) > 50 {
		return nil, badRequest("RESULTS_TOO_MUCH")
	}
	return answerQuery("inline_query", "inline_query_id")(s, c)
}
