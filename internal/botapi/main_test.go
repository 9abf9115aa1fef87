package botapi

import (
	"os"
	"testing"
)

// TestMain takes the proxies of the environment away: they would answer for hosts that
// the tests need to be unreachable.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	m.Run()
}
