package botapi

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
)

// callError is the error of a call with its secrets taken out. It doesn't unwrap, since
// whoever printed the cause would print them; errors.Is still sees through it.
type callError struct {
	text  string
	cause error
}

func (e *callError) Error() string { return e.text }

// Is reports whether the cause is target.
func (e *callError) Is(target error) bool { return errors.Is(e.cause, target) }

// Timeout reports whether the call ended because something took too long.
func (e *callError) Timeout() bool {
	for _, target := range []error{ErrConnectTimeout, ErrStalled, ErrResponseTimeout, context.DeadlineExceeded} {
		if errors.Is(e.cause, target) {
			return true
		}
	}
	var t interface{ Timeout() bool }
	return errors.As(e.cause, &t) && t.Timeout()
}

// clean takes the token and the proxy password out of an error and adds what may help.
func (c *Client) clean(err error) error {
	if err == nil {
		return nil
	}
	text := c.token.Redact(err.Error())
	if c.hide != "" {
		text = strings.ReplaceAll(text, c.hide, redacted)
	}
	return &callError{text: text + certificateHint(err, systemRoots), cause: err}
}

// systemRoots are the root certificates of this machine, nil when it has none.
func systemRoots() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil || pool.Equal(x509.NewCertPool()) {
		return nil
	}
	return pool
}

// certificateHint says what is probably wrong when a certificate isn't accepted.
func certificateHint(err error, roots func() *x509.CertPool) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		// A board without a battery starts in the past, where no certificate is valid yet.
		return " (is the clock right?)"
	case errors.As(err, &unknown) && roots() == nil:
		return " (this machine has no root certificates: apt install ca-certificates)"
	case errors.As(err, &unknown):
		return " (does something else answer in its place: a proxy, a captive portal?)"
	}
	return ""
}
