package spool

import "syscall"

// Volatile tells on what a folder lies that a restart of the machine empties:
// "tmpfs", "ramfs", or "overlay", the upper layer of a read-only root. It is
// empty where what is written stays, or nobody knows.
func Volatile(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return ""
	}
	return volatileKind(uint32(st.Type))
}

func volatileKind(magic uint32) string {
	switch name := fileSystems[magic].name; name {
	case "tmpfs", "ramfs", "overlay":
		return name
	}
	return ""
}
