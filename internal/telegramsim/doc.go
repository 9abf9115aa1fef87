// Package telegramsim is a faithful simulator of the Telegram Bot API.
//
// It is used in three ways: by tests, through an in-process transport that
// needs no sockets and lives happily under fake time; by the demonstration, as
// a separate process on a real socket; and by people who write bots and want a
// Telegram that they can break on purpose.
//
// What it keeps to: the parameter rules of the wire (query before body, first
// value wins, three body encodings, broken JSON tolerated), the offset rules of
// getUpdates, the 409 rules between pollers and webhooks, the retention of each
// kind of update, the texts of real errors, the counters of message ids, and
// the states that a chat can be in. What it does not do: pictures are not
// looked into, URLs are not fetched, and members of groups are not modelled.
//
// Everything that truly arrived stands in the journal, one entry per arrival,
// so that a message sent twice shows as two. Faults are scripts: a fault says
// which calls it meets, how often, and whether the call takes effect before the
// fault shows ("the answer was lost").
//
// All waiting is done on channels and timers, never by looking again and again,
// so that a whole day of long polls passes at once under fake time. One mutex
// guards all state: a simulator is simple before it is fast.
//
// # Control over HTTP
//
// Another process drives the simulator through these paths, which Handler and
// ControlHandler serve, and which the type Remote speaks. Bodies and answers
// are JSON; an error is {"error":"…"} with a 4xx status.
//
//	GET    /sim/journal?after=N&timeout=S  arrivals with n > N; waits up to S seconds for the first
//	GET    /sim/polls                      the getUpdates calls that were answered
//	GET    /sim/status                     bots with the number of pending updates
//	POST   /sim/feed?bot=ID                updates, one JSON object a line -> {"update_ids":[…]}, 0 = filtered
//	POST   /sim/text                       {"chat_id","user_id","text"} -> {"update_id"}
//	POST   /sim/press                      {"chat_id","user_id","message_id","data"} -> {"update_id"}
//	POST   /sim/jump                       {"bot","next"}: the next update id
//	GET    /sim/faults                     the scripted faults that are still there
//	POST   /sim/faults                     a fault -> {"id"}
//	DELETE /sim/faults/{id}
//	POST   /sim/offline                    {"offline":true|false}
//	GET    /sim/chats                      ids of all chats
//	GET    /sim/chats/{id}                 the messages now in a chat
//	POST   /sim/chats                      a chat: {"id","type","title","username"}
//	POST   /sim/chats/{id}/{verb}          block, unblock, kick, leave, deactivate, delete, remove
//	POST   /sim/migrate                    {"old","new"}
//	POST   /sim/token                      {"token","revoked":true|false}
//
// A simulator that goes offline closes its listener, so control it through a
// listener of its own (ServeControl).
package telegramsim
