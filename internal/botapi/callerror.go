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
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		// A board without a battery starts in the past, where no certificate is valid yet.
		text += " (is the clock right?)"
	}
	return &callError{text: text, cause: err}
}
