// Package intake brings updates from Telegram into the inbox of the spool.
//
// A Poller is the long poll of one bot. What holds:
//
//   - The offset that acknowledges a batch is committed in the same transaction
//     as the batch, and only a committed offset is ever sent. If we stop
//     anywhere, Telegram hands over again what wasn't committed, and the spool
//     knows what it has.
//   - The next offset is the id of a batch's last update plus one, also when
//     that is lower than before: Telegram starts anew at a random id after a
//     quiet week.
//   - What can't be read is kept as it came, once, and never holds up what
//     comes behind it.
//   - An answer that isn't a batch of updates acknowledges nothing.
//   - Nothing makes a Poller give up: an outage, a refused token or a full disk
//     is waited out, and it goes on by itself.
//
// Idle, a Poller is one open request; it never asks in a loop. Which handler an
// update goes to is decided by the function handed in, at the time of intake.
package intake
