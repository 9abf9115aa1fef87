package handler

import (
	"slices"
	"testing"
)

func TestUnitEnvironment(t *testing.T) {
	daemons := []string{"PATH=/bin", "LANG=C.UTF-8", "HOME=/var/lib/tgspool", "TGSPOOL_TEXT=/up"}
	tests := []struct {
		name        string
		units, want []string
	}{
		{"no unit", nil, daemons},
		{"what systemd sets", []string{
			"PATH=/usr/bin", "LANG=de_DE.UTF-8", "USER=tgspool-exec", "INVOCATION_ID=1", "LISTEN_FDS=1", "CREDENTIALS_DIRECTORY=/secret",
			"STATE_DIRECTORY=/var/lib/tgspool-exec", "SYSTEMD_EXEC_PID=7", "MANAGERPIDFDID=7", "GOMEMLIMIT=16MiB", "NOTIFY_SOCKET=/run/n", "HOME=",
		}, daemons},
		{"its home", []string{"HOME=/home/pi"}, []string{"PATH=/bin", "LANG=C.UTF-8", "HOME=/home/pi", "TGSPOOL_TEXT=/up"}},
		{"a drop-in", []string{"TGSPOOL_SOCKET=/run/tgspool/submit.sock", "EMPTY="}, append(slices.Clone(daemons), "TGSPOOL_SOCKET=/run/tgspool/submit.sock", "EMPTY=")},
		{"the update's own stays", []string{"TGSPOOL_TEXT=/forged"}, daemons},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := unitEnvironment(daemons, tt.units); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
