package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// postgres is a PostgreSQL server of our own that listens on a unix socket only.
type postgres struct {
	dir string
	as  *syscall.SysProcAttr // whom it runs as
}

// startPostgres makes a database in dir and starts a server on it. As root it
// runs as the user postgres, since it refuses to run as root.
func startPostgres(dir string) (*postgres, error) {
	p := &postgres{dir: filepath.Join(dir, "postgres")}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	if err := p.leaveRoot(dir); err != nil {
		return nil, err
	}
	if err := p.run("initdb", "-D", p.dir, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"); err != nil {
		return nil, err
	}
	options := fmt.Sprintf("-c listen_addresses='' -c unix_socket_directories='%s' -c synchronous_commit=on", p.dir)
	return p, p.run("pg_ctl", "-D", p.dir, "-l", filepath.Join(p.dir, "log"), "-w", "-o", options, "start")
}

func (p *postgres) leaveRoot(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	p.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	// The two folders above were made for this run and are ours alone: it must
	// get through them.
	for _, above := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(above, 0o711); err != nil {
			return err
		}
	}
	return os.Chown(p.dir, uid, gid)
}

func (p *postgres) stop() error { return p.run("pg_ctl", "-D", p.dir, "-m", "fast", "-w", "stop") }

func (p *postgres) run(name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir, c.SysProcAttr, c.Stderr = "/", p.as, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	return nil
}
