package manage

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"

	"github.com/tgspool/tgspool/internal/spool"
)

// Backup is the answer of POST /v1/db/backup.
type Backup struct {
	spool.SnapshotInfo
	Problems []string `json:"problems"` // with check: what doesn't fit; empty when all is well
}

// backup makes a snapshot of the store: {"to":"/path"} for a file of its own,
// else in the folder of the snapshots; {"check":true} makes one, looks at it and
// removes it. A snapshot is checked as a whole in any case. Only the unix socket
// has this: who may name files of this machine must be known to it.
func (a *api) backup(r *http.Request) (int, any, error) {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || addr.Network() != "unix" {
		return 0, nil, problemf(http.StatusForbidden, "this is possible on the unix socket only")
	}
	to, check, err := readBackup(r)
	if err != nil {
		return 0, nil, err
	}
	// It outlives a caller that hangs up, and ends with the daemon.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if check {
		problems, err := a.store.CheckSnapshot(ctx)
		if err != nil {
			return 0, nil, fileProblem(err)
		}
		return http.StatusOK, Backup{Problems: append([]string{}, problems...)}, nil
	}
	info, err := a.store.Snapshot(ctx, spool.SnapshotOptions{To: to})
	if err != nil {
		return 0, nil, fileProblem(err)
	}
	return http.StatusCreated, Backup{SnapshotInfo: info, Problems: []string{}}, nil
}

// fileProblem tells the caller what is wrong with a file that it has named, or
// with the store itself: it may know both.
func fileProblem(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return problemf(http.StatusConflict, "%s", err)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return problemf(http.StatusUnprocessableEntity, "%s", err)
	}
	if errors.Is(err, spool.ErrDamaged) {
		return problemf(http.StatusInternalServerError, "%s", err)
	}
	return err
}

func readBackup(r *http.Request) (to string, check bool, err error) {
	body, _, err := readBody(r)
	if err != nil || len(body) == 0 {
		return "", false, err
	}
	all, err := readObject(body)
	if err != nil {
		return "", false, err
	}
	for _, m := range all {
		switch m.name {
		case "to":
			to, err = decode[string](m, "a path")
		case "check":
			check, err = decode[bool](m, "true or false")
		default:
			err = unknownMember(m.name, []string{"to", "check"})
		}
		if err != nil {
			return "", false, err
		}
	}
	if to != "" && !filepath.IsAbs(to) {
		return "", false, problemf(http.StatusUnprocessableEntity, `"to" must be an absolute path`)
	}
	return to, check, nil
}
