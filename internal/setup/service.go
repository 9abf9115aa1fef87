package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Unit is the service of an installed tgspool. Enabling it enables its sockets.
const Unit = "tgspool.service"

// Systemctl runs systemctl and returns what it prints; it is a variable of the
// callers so that tests need no systemd.
type Systemctl func(ctx context.Context, args ...string) (string, error)

// SystemSystemctl runs the real one.
func SystemSystemctl(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Booted reports whether systemd runs this machine.
func Booted() bool {
	info, err := os.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// ErrNoUnit says that tgspool isn't installed as a service here.
var ErrNoUnit = errors.New("there is no tgspool.service here")

// StartService enables the service with its sockets and starts it, or starts it
// anew: credentials are read at a start only.
func StartService(ctx context.Context, systemctl Systemctl) error {
	if _, err := systemctl(ctx, "cat", "--no-pager", Unit); err != nil {
		return ErrNoUnit
	}
	for _, args := range [][]string{{"enable", Unit}, {"restart", Unit}} {
		if out, err := systemctl(ctx, args...); err != nil {
			return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
