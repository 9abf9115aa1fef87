package handler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"
)

// UnitSocket is where an installed tgspool has the socket of the unit that runs
// programs.
const UnitSocket = "/run/tgspool/exec.sock"

const (
	unitDial = 5 * time.Second
	// unitAnswer bounds what the unit does before it starts a program: systemd
	// starts an instance, which reads the request and looks at the file. A small
	// board that boots takes a while for that.
	unitAnswer = 20 * time.Second
	// unitFarewell bounds the wait for the end of a program that is to stop.
	unitFarewell = pipeDelay + 2*time.Second
)

// errUnitLost ends a run of which only its beginning is known.
var errUnitLost = errors.New("the unit that runs handlers ended before the program did")

// unitRun is one run in the unit, as the daemon sees it.
type unitRun struct {
	conn net.Conn
	in   *bufio.Reader
}

// inUnit has the unit run the program. An error means that it never started.
func (p program) inUnit(ctx context.Context, env []string, s streams) (exitStatus, error) {
	u, err := p.prepare(ctx, env, s.stdin)
	if err != nil {
		return exitStatus{}, err
	}
	defer u.close()
	if ctx.Err() != nil {
		return exitStatus{}, ctx.Err()
	}
	if _, err := u.conn.Write([]byte{unitGoOn}); err != nil {
		return exitStatus{}, unreachable(err)
	}
	stop := context.AfterFunc(ctx, u.stop)
	defer stop()
	return u.follow(s)
}

// lookInUnit asks whether the unit could start the program, and leaves it at that.
func (p program) lookInUnit(ctx context.Context) error {
	u, err := p.prepare(ctx, nil, nil)
	if err != nil {
		return err
	}
	u.close()
	return nil
}

// prepare hands the request over and returns once the unit is ready to start
// the program. Until then nothing has been started.
func (p program) prepare(ctx context.Context, env []string, stdin []byte) (*unitRun, error) {
	request, err := unitRequest{Argv: p.argv, Env: env, Dir: p.dir, TimeoutMS: p.timeout.Milliseconds()}.encode(stdin)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: unitDial}
	conn, err := dialer.DialContext(ctx, "unix", p.unit)
	if err != nil {
		return nil, unreachable(err)
	}
	u := &unitRun{conn: conn, in: bufio.NewReader(conn)}
	stop := context.AfterFunc(ctx, u.close)
	defer stop()
	if err := u.ask(request); err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

// ask writes the request and reads the answer to it.
func (u *unitRun) ask(request []byte) error {
	if err := u.conn.SetDeadline(time.Now().Add(unitAnswer)); err != nil {
		return unreachable(err)
	}
	if _, err := u.conn.Write(request); err != nil {
		return unreachable(err)
	}
	f, err := readFrame(u.in)
	switch {
	case err != nil:
		return unreachable(err)
	case f.kind == frameFailed:
		return failure(f)
	case f.kind != frameReady:
		return unreachable(fmt.Errorf("it answers %q", f.kind))
	}
	if err := u.conn.SetDeadline(time.Time{}); err != nil {
		return unreachable(err)
	}
	return nil
}

// stop has the program killed. The unit's last words are waited for, but not
// for long: a hang-up does the same.
func (u *unitRun) stop() {
	// Where these fail the connection is gone, and with it the program.
	_ = u.conn.SetDeadline(time.Now().Add(unitFarewell))
	_, _ = u.conn.Write([]byte{unitStop})
}

func (u *unitRun) close() { _ = u.conn.Close() } // whatever it says, the unit sees a hang-up

// follow passes on what the unit says until the program has ended. From here on
// only the unit's own word counts for a program that didn't start: where the
// connection breaks first, it may have run.
func (u *unitRun) follow(s streams) (exitStatus, error) {
	end := exitStatus{Code: -1, Text: errUnitLost.Error()}
	for begun := false; ; {
		f, err := readFrame(u.in)
		switch {
		case err == nil && f.kind == frameFailed && !begun:
			return exitStatus{}, failure(f)
		case !begun:
			begun = true
			s.started()
		}
		if err != nil {
			return end, nil //nolint:nilerr // how a run ends is a status, and no error
		}
		switch f.kind {
		case frameStdout:
			_, _ = s.stdout.Write(f.payload) // they never fail
		case frameStderr:
			_, _ = s.stderr.Write(f.payload)
		case frameEnded:
			// What can't be read leaves the end as it is: nobody knows.
			_ = json.Unmarshal(f.payload, &end)
			return end, nil
		}
	}
}

// failure reads the unit's reason.
func failure(f frame) error {
	var why unitFailure
	if err := json.Unmarshal(f.payload, &why); err != nil {
		return unreachable(err)
	}
	return why.err()
}

// unreachable says that there is no unit to run a program.
func unreachable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("the unit that runs handlers can't be reached (is tgspool-exec.socket active?): %w", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the unit that runs handlers can't be reached by this user: %w", err)
	}
	return fmt.Errorf("the unit that runs handlers can't be reached: %w", err)
}
