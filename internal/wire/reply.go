package wire

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// Call is one call of the Bot API as it was asked for.
type Call struct {
	Method string
	Params *Params
}

// ignoredInReplies are calls that Telegram, too, makes nothing of in an answer.
var ignoredInReplies = map[string]bool{"setwebhook": true, "deletewebhook": true, "close": true, "logout": true}

// readReply reads the call that a webhook's answer holds; nil when it holds none.
func readReply(resp *http.Response, up Keeper) (*Call, error) {
	g := &Gathering{}
	if err := readAnswer(resp, g, up); err != nil {
		return nil, err
	}
	name := g.takeMethod()
	lower := strings.ToLower(name)
	if name == "" || ignoredInReplies[lower] || strings.HasPrefix(lower, "get") {
		return nil, nil
	}
	return &Call{Method: name, Params: g.Params(up.Has)}, up.Finish()
}

// takeMethod takes the method's name out of the parameters.
func (g *Gathering) takeMethod() string {
	for i, f := range g.list {
		if f.Name == "method" {
			g.list, g.whole = append(g.list[:i:i], g.list[i+1:]...), nil
			return strings.TrimSpace(TextOf(f.Value))
		}
	}
	return ""
}

// readAnswer reads the body of an answer as Telegram reads one. What is in no
// form of a call is none.
func readAnswer(resp *http.Response, g *Gathering, up Keeper) error {
	kind, options, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if kind == "multipart/form-data" {
		return g.ReadMultipart(Limit(resp.Body, up.Limit()+FormSlack), options["boundary"], up)
	}
	all, err := io.ReadAll(Limit(resp.Body, MaxParams))
	if err != nil {
		if _, tooLong := errors.AsType[*Error](err); tooLong && kind != "application/json" {
			return nil // a page, a picture: whatever it is, no call
		}
		return err
	}
	switch text := strings.TrimSpace(string(all)); {
	case kind == "application/x-www-form-urlencoded":
		return g.AddForm(string(all))
	case strings.HasPrefix(text, "{"):
		return g.AddObject(all)
	}
	return nil
}

// noted remembers what has ended a body before its time.
type noted struct {
	io.ReadCloser

	err error
}

// Read reads on.
func (n *noted) Read(p []byte) (int, error) {
	k, err := n.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return k, err
}
