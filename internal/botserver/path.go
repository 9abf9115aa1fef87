package botserver

import "strings"

// target is what a path asks for.
type target struct {
	token  string
	method string // as written; empty: the parameter "method" says it
	file   string // path of a file; with isFile
	isFile bool
}

// parsePath reads /bot<token>/<method> and /file/bot<token>/<path>, both also
// with test/ after the token: a token belongs to one environment, so that the
// word tells nothing that the token doesn't. The path is decoded already. More
// slashes than needed do no harm, and nothing is ever answered by a redirect,
// which a streamed upload couldn't follow.
func parsePath(path string) (t target, ok bool) {
	rest := strings.TrimLeft(path, "/")
	if after, found := strings.CutPrefix(rest, "file/"); found {
		rest, t.isFile = strings.TrimLeft(after, "/"), true
	}
	rest, found := strings.CutPrefix(rest, "bot")
	if !found {
		return target{}, false
	}
	t.token, rest, found = strings.Cut(rest, "/")
	if !found {
		return target{}, false
	}
	rest = strings.TrimLeft(rest, "/")
	if after, found := strings.CutPrefix(rest, "test/"); found {
		rest = strings.TrimLeft(after, "/")
	}
	if t.isFile {
		t.file = rest
		return t, rest != ""
	}
	t.method = strings.TrimRight(rest, "/")
	return t, true
}
