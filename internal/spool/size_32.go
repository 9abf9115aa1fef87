//go:build 386 || arm || mips || mipsle

package spool

// defaultMaxSize is the file's size limit in bytes: where an address has 32
// bits the mapping must find one free range for the whole file.
const defaultMaxSize int64 = 256 << 20
