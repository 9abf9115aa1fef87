package botapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	defaultBaseURL        = "https://api.telegram.org"
	defaultRequestTimeout = 60 * time.Second
	defaultStallTimeout   = 60 * time.Second
	defaultMaxBody        = 16 << 20
)

// Config says whom a Client calls and how long it waits.
type Config struct {
	Token          Token             // required
	BaseURL        string            // default https://api.telegram.org; a path in it stays in front
	Proxy          string            // http://, https:// or socks5:// URL; "" takes the environment's
	IPFamily       string            // "auto" (default), "4" or "6"
	RequestTimeout time.Duration     // from the last byte written to the answer; default 60 s
	StallTimeout   time.Duration     // longest time without progress while writing; default 60 s
	Transport      http.RoundTripper // in place of the network, for tests and in-process servers; nil: the network
	Now            func() time.Time  // the time by which certificates are judged; nil: the wall clock
}

// Request is one call of a method.
type Request struct {
	Method  string
	Params  json.RawMessage // a JSON object, sent unchanged when there are no files; nil is {}
	Files   []File          // uploads; with them the call goes out as multipart/form-data
	Timeout time.Duration   // in place of Config.RequestTimeout, for long polls
	MaxBody int64           // most bytes of the answer that are read; default 16 MiB
	Fresh   bool            // over a connection of its own
}

// File is one file of an upload.
type File struct {
	Field string // name of the part: that of the parameter or of an attach:// reference
	Name  string // file name as Telegram is told; "" is the same as Field
	Path  string // where the content lies
}

// Client calls the Bot API for one bot. It may be used by many goroutines.
type Client struct {
	token        Token
	base         *url.URL
	timeout      time.Duration
	stall        time.Duration
	pooled       http.RoundTripper
	polling      http.RoundTripper // getUpdates alone
	fresh        http.RoundTripper // every call has a connection of its own
	own          []*http.Transport // the transports that Close tidies
	hide         string            // proxy password, which may not be shown either
	dialDeadline time.Duration     // until a connection stands; 0 with a transport that was given
}

// NewClient returns a client for the bot of config.Token. Nothing is sent yet. Its errors
// repeat neither token nor proxy password.
func NewClient(config Config) (*Client, error) {
	if config.Token.IsZero() {
		return nil, errors.New("client has no token")
	}
	base, err := parseBase(config.BaseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{
		token:   config.Token,
		base:    base,
		timeout: orDefault(config.RequestTimeout, defaultRequestTimeout),
		stall:   orDefault(config.StallTimeout, defaultStallTimeout),
	}
	if config.Transport != nil {
		c.pooled, c.fresh, c.polling = config.Transport, config.Transport, config.Transport
		return c, nil
	}
	proxy, password, err := parseProxy(config.Proxy)
	if err != nil {
		return nil, err
	}
	network, err := networkOf(config.IPFamily)
	if err != nil {
		return nil, err
	}
	pooled, fresh := newTransport(network, proxy, config.Now), newTransport(network, proxy, config.Now)
	fresh.DisableKeepAlives = true
	// A poll is always under way and safe to repeat: its connection needs no end
	// of its own, and a timer that nobody needs is a wakeup that nobody needs.
	polling := newTransport(network, proxy, config.Now)
	polling.IdleConnTimeout = 0
	c.pooled, c.fresh, c.polling = pooled, fresh, polling
	c.own = []*http.Transport{pooled, fresh, polling}
	c.hide = password
	c.dialDeadline = connectTimeout
	return c, nil
}

// methodPoll is the one call that is always under way.
const methodPoll = "getUpdates"

// BotID returns the id of the bot.
func (c *Client) BotID() int64 { return c.token.BotID() }

// Close gives up the idle connections. Calls in flight go on until their context ends.
func (c *Client) Close() {
	for _, t := range c.own {
		t.CloseIdleConnections()
	}
}

// Call makes one request and returns what was seen of it. It always returns: once ctx
// ends, no connection stands in time, writing stalls, or no answer comes in time.
func (c *Client) Call(ctx context.Context, r Request) Seen {
	start := time.Now()
	seen := c.call(ctx, r)
	seen.Duration = time.Since(start)
	seen.Err = c.clean(seen.Err)
	seen.ContentType = c.token.Redact(seen.ContentType)
	if !bytes.HasPrefix(bytes.TrimSpace(seen.Body), []byte(`{"ok":true`)) {
		// What is stored and shown of a refusal may repeat the URL. Results stay as
		// they came: an update may well have the token in its text.
		seen.Body = []byte(c.token.Redact(string(seen.Body)))
	}
	return seen
}

func (c *Client) call(ctx context.Context, r Request) Seen {
	if err := ctx.Err(); err != nil {
		return Seen{Err: err}
	}
	body, err := newBody(r)
	if err != nil {
		return Seen{Err: err}
	}
	defer body.close() // a transport that was given to us may forget it
	ctx, watch := newWatch(ctx, c, orDefault(r.Timeout, c.timeout))
	defer watch.stop()
	request, err := c.newHTTPRequest(ctx, r.Method, body)
	if err != nil {
		return Seen{Err: err}
	}
	body.progress = watch.bodyTaken
	transport := c.pooled
	if r.Method == methodPoll {
		transport = c.polling
	}
	if r.Fresh {
		transport = c.fresh
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return watch.failed(err)
	}
	defer func() {
		// An error here tells nothing that reading the body hasn't told.
		_ = response.Body.Close()
	}()
	limit := r.MaxBody
	if limit <= 0 {
		limit = defaultMaxBody
	}
	return watch.answered(response, limit)
}

// newHTTPRequest is built by hand: http.NewRequest would give the body a way to be sent
// again, and its errors would show the URL.
func (c *Client) newHTTPRequest(ctx context.Context, method string, body *requestBody) (*http.Request, error) {
	if method == "" || strings.ContainsFunc(method, unfitForMethod) {
		return nil, fmt.Errorf("%w: %q is no method name", ErrRequest, clip(method, 64))
	}
	target := *c.base
	target.Path = strings.TrimSuffix(target.Path, "/") + "/bot" + c.token.Reveal() + "/" + method
	request := &http.Request{
		Method:        http.MethodPost,
		URL:           &target,
		Host:          target.Host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {body.contentType}, "User-Agent": {"tgspool"}},
		Body:          body,
		ContentLength: body.size,
	}
	return request.WithContext(ctx), nil
}

func unfitForMethod(r rune) bool {
	return r >= utf8.RuneSelf || !isWordByte(byte(r))
}

func parseBase(s string) (*url.URL, error) {
	if s == "" {
		s = defaultBaseURL
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		// The error of url.Parse repeats its input, which may hold a password.
		return nil, errors.New("API base is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("API base must begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("API base has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("API base may have only a scheme, a host and a path")
	}
	return u, nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// clip shortens a text that came from outside before it is repeated.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
