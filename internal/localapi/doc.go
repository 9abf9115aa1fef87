// Package localapi is how programs on this machine reach the daemon: the
// listeners, who may do what on each of them, and the client that the commands
// use.
//
// On a unix socket the kernel says who is calling. The management API answers
// root, the daemon's own user and members of its own group, and nobody else,
// whatever the mode of the socket file. Over TCP anybody on the machine could
// call, so that there only the two health checks are open until a caller can
// prove who it is.
//
// A socket file left behind by a daemon that was killed is removed; one that
// somebody answers on never is.
package localapi
