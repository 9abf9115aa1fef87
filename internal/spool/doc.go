// Package spool is the store: everything that must survive a crash or a power
// cut lives in its one bbolt file, and every change of state is one method
// here. It knows nothing of Telegram, HTTP or programs.
//
// # Guarantees
//
//   - One writer goroutine owns all changes. It puts whatever waits into one
//     transaction and answers each caller after the commit, so an answer means
//     "on disk".
//   - A transition checks everything before its first write and is refused when
//     the record's state has moved (ErrConflict), so that a late result never
//     undoes a person's decision.
//   - Claims park with the writer: the transaction that makes a job or an
//     update ready also claims it for a worker that waits. Between claim and
//     call nothing is waited for any more.
//   - Memory doesn't grow with the queue: what goes out next is read from an
//     index that holds only the heads of open chats.
//
// # Schema, version 1
//
// All integers in keys are big-endian, so that byte order is their order.
// bot is the bot's internal number (2 bytes), chat the internal number of a
// chat (4), lane and state one byte, id, seq, order and at eight. Values
// marked * are CBOR behind a CRC-32C over key and value.
//
//	meta      "schema" → version · "next_job" → last job id given
//	          "clock" → the last moment on disk *
//	          "recovery" → the last restore or repair, and how far it is *
//	botnum    Telegram's bot id → bot
//	bots      bot → offset, counters, cooldown *
//	notes     bot, name → what other rooms keep (getMe, allowed_updates)
//
//	live      bot, id → job that is pending or running *
//	parked    bot, state, id → job that is uncertain or held *
//	ended     bot, state, id → job that is done, dead, cancelled or expired *
//	body      id → parameters of more than 1 KiB, never rewritten *
//	run       bot, id → the attempt under way: the job is running *
//	queue     bot, chat, lane, order → id, weight, retry_at: pending, in order
//	ready     bot, lane, order → chat, id: heads of open chats only
//	key       bot, hash of a dedupe key → id, until
//	          bot, half of a call's fingerprint, id → id, 0: its end is unread
//	          bot, hash of a message or a job, id → id, 0: an edit of the message that
//	          is queued, a job that waits for the other's result
//	chat      bot, chat → ids, type, gates, activity *
//	alias     bot, name → chat: every id and @name of a chat
//
//	inbox     bot, seq → update that is open or leased *
//	inended   bot, state, seq → update whose life is over *
//	inbody    bot, seq → updates of more than 1 KiB, never rewritten *
//	inlease   bot, seq → the lease: the update is leased *
//	inqueue   bot, order key's hash, seq → handler's hash: open, in order
//	inready   bot, handler's hash, seq → order key's hash: heads of free keys
//	inpull    bot, seq → update_id, replayed: open, of the pull route, in order of arrival
//	session   bot, chat id with its sign turned, user id or 0 → session *
//	seen      bot, update_id → seq
//
//	timer     at, kind, bot, id → nothing: all that waits for a time
//	damaged   bucket, 0, key → a record whose checksum was wrong
//
// # The file
//
// bbolt maps the file and trusts it; a wrong number in a page would end the
// process. So every file is first read through read calls: whole, where it is
// small or bbolt would read all of it itself, else its heads and small buckets.
// Goroutines that touch the mapping turn faults and bbolt's panics into errors;
// such a store is given up (Broken) and the next Open looks at all of it.
//
// A file that can't be used is kept under another name. What takes its place is
// older than what may have been sent, so it is fenced before anybody gets it:
// the record "recovery" says how far that is, and each start goes on with it.
//
// New files grow as <name>.new and take a place by rename; whatever is found
// under such a name at a start is half made and goes.
//
// # Invariants
//
// A job stands in exactly one of live, parked and ended. It is running if and
// only if run has it; else, if live, it is in queue, or in timer when its
// not_before is still to come, or linked in key when it waits for a result. ready holds for each chat that has no running
// job the head of each lane whose gates are open. The counters in bots equal
// the number of records per state. A test checks all of this after every
// scenario.
package spool
