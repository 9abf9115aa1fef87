// Package botapi speaks the Telegram Bot API on the wire.
//
// It holds a client that knows how far a failed request got, the table of methods,
// the one function that decides what an answer means, the tolerant reader of updates,
// and a token type that can't be printed. Whoever calls Telegram does it through here.
//
// What it guarantees:
//
//   - One [Client.Call] is at most one request: nothing is replayed, no redirect is
//     followed, and every wait has a bound.
//   - A [Seen] tells exactly whether a byte of the request may have left. Where that
//     can't be known it says that one did, since a message sent twice can't be undone
//     while one that waits for a decision can still be sent.
//   - [Classify] looks at nothing but its arguments.
//   - No error and no printed value holds a token.
//
// What it doesn't do: it retries nothing, waits for no limit, and keeps nothing.
package botapi
