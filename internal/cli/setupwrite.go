package cli

import (
	"context"
	"errors"
	"os"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/setup"
)

// write stores the token and the settings. The token comes first: settings
// without one would start a bot that can't work, a token without settings is
// one that nobody uses.
func (s *setupRun) write(context.Context) error {
	if err := s.dir.EnsureMain(config.Example()); err != nil {
		return &exitError{code: exitIO, msg: err.Error()}
	}
	change, err := s.dir.Plan(s.entry)
	if err != nil {
		return &exitError{code: exitConfig, msg: err.Error()}
	}
	if change.Foreign && !change.Same() {
		if err := s.mayReplace(change.Path + " has been edited by hand; a copy is kept as 50-setup.toml.old. Replace it?"); err != nil {
			return err
		}
	}
	token, err := setup.StageToken(s.place, s.token)
	if err != nil {
		return &exitError{code: exitIO, msg: err.Error()}
	}
	if err := token.Commit(); err != nil {
		return &exitError{code: exitIO, msg: err.Error()}
	}
	s.out.printf("token    %s, which nobody else can read\n", s.place)
	if change.Same() {
		return s.say("settings %s, as they were\n", change.Path)
	}
	if err := s.dir.Apply(change); err != nil {
		return &exitError{code: exitConfig, msg: err.Error()}
	}
	return s.say("settings %s\n", change.Path)
}

// start has the service started, where there is one.
func (s *setupRun) start(ctx context.Context) error {
	why := ""
	switch {
	case !s.dir.System():
		why = "tgspool run --config " + s.dir.Main()
	case !setup.Booted():
		why = "systemd doesn't run here; after the next boot: systemctl enable --now tgspool"
	}
	if why != "" {
		return s.say("service  not started: %s\n", why)
	}
	err := setup.StartService(ctx, setup.SystemSystemctl)
	switch {
	case errors.Is(err, setup.ErrNoUnit):
		return s.say("service  not started: %s; tgspool run\n", err)
	case err != nil:
		return withHint(&exitError{code: exitTempFail, msg: err.Error()}, "journalctl -u tgspool -n 20 says why")
	}
	s.out.printf("service  enabled and started\n\n")
	if s.entry.Me != "" {
		s.out.printf("Try it: tgspool send --bot %s \"hello\"\n", s.entry.Bot)
	}
	return nil
}

// mustRoot refuses to write the system's tokens as somebody else.
func (a *app) mustRoot(dir setup.Dir, what string) error {
	if dir.System() && os.Geteuid() != 0 {
		return withHint(usagef("only root may change the system's tokens"), "sudo tgspool "+what)
	}
	return nil
}
