package spool

import "testing"

func TestVolatileKind(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x01021994: "tmpfs", 0x794C7630: "overlay", 0x858458F6: "ramfs",
		0xEF53: "", 0x6969: "", 0x65735546: "", 0: "", // ext4, NFS, FUSE, unknown
	} {
		if got := volatileKind(magic); got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
	if got := Volatile("/no/such/folder"); got != "" {
		t.Errorf("a folder that isn't there is %q", got)
	}
}
