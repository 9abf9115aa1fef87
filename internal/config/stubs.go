package config

// Key is one key of the settings.
type Key struct {
	Path    string
	Type    string
	Default string
	Doc     string
	Restart bool
	Secret  bool
	Values  []string
}

func Load(path string, env func(string) string) (*Config, error) { panic("soon") }
func Resolve(flag string, env func(string) string) (path string, explicit bool) { panic("soon") }
func Check(cfg *Config) []Problem { panic("soon") }
func Keys() []Key { panic("soon") }
func Example() string { panic("soon") }
func Diff(old, new *Config) (reloadable, restart []string) { panic("soon") }
func ReadToken(bot Bot, env func(string) string) (token, source string, err error) { panic("soon") }
func ReadSecret(path string) (string, error) { panic("soon") }
