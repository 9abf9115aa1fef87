package handler

import (
	"slices"
	"strings"
)

// systemdsOwn are the variables that every unit has, see systemd.exec(5), and the
// one that our unit sets for itself. A program has no use for them, and what
// speaks to the service manager or names credentials isn't its business.
var systemdsOwn = []string{
	"PATH", "LANG", "USER", "LOGNAME", "SHELL", "TERM", "PIDFILE", "GOMEMLIMIT",
	"XDG_RUNTIME_DIR", "MAINPID", "NOTIFY_SOCKET", "JOURNAL_STREAM", "LOG_NAMESPACE", "DEBUG_INVOCATION", "FDSTORE",
}

// systemdsPrefixes are how others of them begin.
var systemdsPrefixes = []string{
	"INVOCATION_", "MANAGERPID", "LISTEN_", "WATCHDOG_", "SYSTEMD_", "REMOTE_", "TRIGGER_", "MEMORY_PRESSURE_",
	"RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY",
	"CREDENTIALS_DIRECTORY",
}

// unitEnvironment is a program's environment in the unit: what the daemon says,
// the unit's HOME, and what an administrator's drop-in has set.
func unitEnvironment(daemons, units []string) []string {
	env := slices.Clone(daemons)
	for _, variable := range units {
		name, _, _ := strings.Cut(variable, "=")
		at := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		switch {
		case name == "HOME" && variable == "HOME=": // none is no home
		case name == "HOME" && at >= 0:
			env[at] = variable
		case at < 0 && !isSystemds(name):
			env = append(env, variable)
		}
	}
	return env
}

func isSystemds(name string) bool {
	return slices.Contains(systemdsOwn, name) ||
		slices.ContainsFunc(systemdsPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
