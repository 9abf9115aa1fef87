// Package botserver is the Bot API on this machine: a bot written with any
// library uses it by changing its base URL, and gets the spool underneath.
//
// Calls that create or change something become jobs of the spool; the caller is
// held until the job has ended and hears Telegram's own result or error. What is
// worthless later goes out at once or not at all, reads pass through, and what
// concerns updates is answered here.
//
// What it guarantees:
//
//   - A call is on disk, with its files, before anything is waited for. If the
//     caller hangs up, or we stop, the job stays; the same call made again joins
//     it instead of making a second one.
//   - Parameters and files go on as they came. They are read only to find the
//     chat, never to be changed.
//   - Every answer is JSON in Telegram's shape with the status it names. Trouble
//     of ours is 429 or 409, which libraries don't repeat by themselves; never a
//     5xx that stands for an unknown outcome.
//   - No token, parameter or file name is logged.
package botserver
