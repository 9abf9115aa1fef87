//go:build !(386 || arm || mips || mipsle)

package spool

// defaultMaxSize is the file's size limit in bytes.
const defaultMaxSize int64 = 1 << 30
