// Package cli is the command line: the table of commands, what they print and
// how they end.
//
// Commands are thin. All but run, config, version and completion speak to the
// daemon through its socket and change nothing by themselves. What they print
// for people has every control character escaped, because names and texts come
// from strangers; what they print for programs (--json) is one JSON object a
// line, with the members of the management API.
//
// Exit codes are those of sysexits.h. Errors go to stderr as
// "tgspool: error: …", followed by "tgspool: hint: …" where there is something
// to be done about them.
package cli
