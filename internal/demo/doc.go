// Package demo is the whole job against the simulator, with proof at the end.
//
// It starts the simulator and the daemon as processes of their own in a
// temporary folder, writes to the bot from 200 chats, queues messages from
// outside by commands, and meanwhile does what a bad night does: it kills the
// daemon three times without warning, floods it, loses answers and takes the
// network away. At the end it compares three records with each other: what it
// asked for, what the spool says, and what the simulator says has arrived.
//
// The proof is one pure function, Tally. A message that should have arrived and
// didn't is lost, one that arrived twice is doubled, and a job may be uncertain
// only if it was in flight when the daemon was killed or its answer was lost.
//
// Everything that the demo does to the daemon it does from outside: by signals,
// by commands of the program, and by the simulator's control paths. Only to
// read the spool of a dead daemon it opens the file, or a copy of it.
package demo
