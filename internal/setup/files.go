package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/tgspool/tgspool/internal/botapi"
)

// SystemDir is the folder of an installed tgspool's settings.
const SystemDir = "/etc/tgspool"

// group is who may read the settings, beside root: the daemon's own.
const group = "tgspool"

// Dir is a folder of settings, as the package lays it out.
type Dir struct {
	Path string
	// Group is whose group may read the settings; -1 leaves that to the system.
	Group int
}

// OpenDir is the folder at path. Only that of the system has an owner that must
// be set.
func OpenDir(path string) Dir {
	d := Dir{Path: path, Group: -1}
	if path != SystemDir {
		return d
	}
	if g, err := user.LookupGroup(group); err == nil {
		if gid, err := strconv.Atoi(g.Gid); err == nil {
			d.Group = gid
		}
	}
	return d
}

// System reports whether the folder is that of the installed service, which
// gets its tokens as credentials.
func (d Dir) System() bool { return d.Path == SystemDir }

// Main is the main settings file.
func (d Dir) Main() string { return filepath.Join(d.Path, "tgspool.toml") }

// Settings is the file that setup writes.
func (d Dir) Settings() string { return filepath.Join(d.Path, "conf.d", "50-setup.toml") }

// Credential is the file of a bot's token.
func (d Dir) Credential(bot string) string {
	return filepath.Join(d.Path, "credentials", bot+".token")
}

// EnsureMain writes the main settings file where there is none, for a folder
// that no package has laid out.
func (d Dir) EnsureMain(text string) error {
	_, err := os.Stat(d.Main())
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s, err := Stage(d.Main(), []byte(text), 0o640, d.Group)
	if err != nil {
		return err
	}
	return s.Commit()
}

// StageToken prepares the file of a token, which only its owner may read.
func StageToken(path string, token botapi.Token) (*Staged, error) {
	return Stage(path, []byte(token.Reveal()+"\n"), 0o600, -1)
}

// Staged is a file that lies ready under another name, on disk, and appears
// with Commit.
type Staged struct {
	path, temporary string
}

// Stage writes a file beside its place. The group is left alone when it is -1.
func Stage(path string, data []byte, mode fs.FileMode, group int) (*Staged, error) {
	dirMode := fs.FileMode(0o750)
	if mode == 0o600 {
		dirMode = 0o700
	}
	dir := filepath.Dir(path)
	if err := makeFolder(dir, dirMode, group); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // 0600, and no name that the settings are read from
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	s := &Staged{path: path, temporary: f.Name()}
	_, err = f.Write(data)
	if err == nil && group >= 0 {
		err = f.Chown(-1, group)
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.Drop()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return s, nil
}

// makeFolder makes a folder, and what is missing above it: the group must be able
// to reach what it may read. The group is left alone when it is -1.
func makeFolder(dir string, mode fs.FileMode, group int) error {
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolder(filepath.Dir(dir), 0o750, group); err != nil {
			return err
		}
		err = os.Mkdir(dir, mode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(dir, mode) // whatever the umask is
	}
	if err == nil && group >= 0 {
		err = os.Chown(dir, -1, group)
	}
	return err
}

// Commit puts the file into its place, for good.
func (s *Staged) Commit() error {
	if err := os.Rename(s.temporary, s.path); err != nil {
		s.Drop()
		return fmt.Errorf("putting a file into its place: %w", err)
	}
	dir, err := os.Open(filepath.Dir(s.path))
	if err != nil {
		return fmt.Errorf("syncing a folder: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("syncing a folder: %w", err)
	}
	return nil
}

// Drop forgets the file. After Commit it does nothing.
func (s *Staged) Drop() {
	_ = os.Remove(s.temporary) // what stays is a file that nobody reads
}
