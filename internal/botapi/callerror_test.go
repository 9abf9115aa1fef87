package botapi

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCertificateHint(t *testing.T) {
	none := func() *x509.CertPool { return nil }
	some := x509.NewCertPool
	tests := []struct {
		name  string
		err   error
		roots func() *x509.CertPool
		want  string // part of the hint; empty: no hint
	}{
		{"expired", x509.CertificateInvalidError{Reason: x509.Expired}, some, "clock"},
		{"invalid in another way", x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, some, ""},
		{"nothing to check it with", x509.UnknownAuthorityError{}, none, "apt install ca-certificates"},
		{"another's certificate", x509.UnknownAuthorityError{}, some, "captive portal"},
		{"wrapped", fmt.Errorf("dialing: %w", x509.UnknownAuthorityError{}), none, "ca-certificates"},
		{"something else", errors.New("connection refused"), none, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := certificateHint(tt.err, tt.roots)
			if got == "" != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("hint %q, want %q", got, tt.want)
			}
		})
	}
}
