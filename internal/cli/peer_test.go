package cli

import (
	"os/user"
	"strconv"
	"testing"
)

func TestMayAsk(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(me.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		uid  uint64
		peer string
		want bool
	}{
		{"root always", 0, "no-such-user", true},
		{"the daemon's user by name", uid, me.Username, true},
		{"by number", 4711, "4711", true},
		{"another user", 4711, "4712", false},
		{"another user than the one named", 4711, "root", false},
		{"a name that nobody has", 4711, "no-such-user", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := mayAsk(uint32(tt.uid), tt.peer); (err == nil) != tt.want {
				t.Errorf("mayAsk is %v", err)
			}
		})
	}
}
