// Package manage is the management API: the /v1 endpoints through which the
// commands and local programs queue jobs, look at them and decide about them,
// the figures for Prometheus, and the two health checks.
//
// It keeps nothing. Every answer is read from the spool or from the live view
// that the daemon hands in, and every change is one transition of the spool, on
// disk before the answer is written. If we stop between the commit and the
// answer, the caller doesn't hear of a job that exists: that is what dedupe
// keys are for.
//
// Requests are read strictly. An unknown member, filter or parameter is refused
// by its name instead of being ignored, because a misspelt filter of a bulk
// cancel would cancel everything. Errors are application/problem+json, made in
// one table (problem.go).
//
// Who may call is decided before, by the listener (package localapi).
package manage
