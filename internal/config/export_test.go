package config

// LoadWhole is Load for settings of which all is built: tests of what a key
// means don't depend on that.
func LoadWhole(path string, env func(string) string) (*Config, error) { return load(path, env, nil) }

// NotBuilt is the list of the keys that nothing acts on yet.
func NotBuilt() []string {
	var keys []string
	for _, u := range notBuilt() {
		keys = append(keys, u.key)
	}
	return keys
}
