// Package wire is what goes over HTTP between us and the bot's own code: calls
// of the Bot API as they come in, in whatever form a library writes them, and
// updates as they go out to a webhook, with the call that its answer may hold.
//
// Parameters keep their bytes. Files are stored while they come. What is wrong
// with a call is an Error, in words that its caller may see; it repeats nothing
// of what was sent.
package wire
