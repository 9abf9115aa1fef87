// Package setup makes a bot ready to run: it asks Telegram whose token it has,
// finds out who the bot's owner is, writes the token and the settings, and has
// the service started.
//
// What holds:
//
//   - Whoever sends the nonce becomes the owner, and nobody else: a bot's name
//     is public, and strangers write to new bots within minutes.
//   - No update is acknowledged but the one that carries the nonce, and that
//     only when it is the oldest: the daemon finds all others.
//   - Nothing is overwritten that somebody else has written, unless the caller
//     says so; what is replaced is kept beside it.
//   - Files appear whole or not at all. If we stop in between, setup can be run
//     again: what is there already is found to be right.
package setup
