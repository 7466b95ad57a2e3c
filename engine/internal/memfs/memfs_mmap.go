//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package memfs

import "syscall"

// chunkBytes is the size of a chunk: large, since untouched pages cost nothing.
const chunkBytes = 1 << 20

// allocChunk returns chunkBytes of zeroed memory outside the Go heap, where
// GOGC does not double it.
func allocChunk() ([]byte, error) {
	return syscall.Mmap(-1, 0, chunkBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

// freeChunk unmaps a chunk of allocChunk.
func freeChunk(c []byte) { _ = syscall.Munmap(c) }
