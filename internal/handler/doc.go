// Package handler brings the inbox to the bot's own code and its answers to the
// outbox.
//
// A Router says which route an update belongs to; that is decided once, when
// the update is taken in, and kept with it. Handlers runs the routes that have
// a program: each has up to Parallel workers, and each worker leases an update,
// runs the program, and commits "handled" together with the calls that the
// program asked for.
//
// What holds:
//
//   - An update is handled at least once. Its attempt is on disk before the
//     program starts; if we stop while it runs, the update is open again at the
//     next start, one attempt poorer. A route with Once is the exception: a
//     start without an end is dead, never a second start.
//   - "Handled" and the calls are one commit, and the n-th call of update U has
//     the key reply:U:n. A program that runs twice causes one set of calls.
//   - What a program prints is taken whole or not at all: one bad line of calls
//     and nothing is queued.
//   - A program that can't be started burns no attempt. Its route waits as a
//     whole, trying with the oldest update.
//   - No program is waited for longer than its timeout plus a moment: what it
//     leaves behind with our pipes open doesn't hold us.
//
// The order (one update of a chat, user or poll at a time) is the spool's work.
package handler
