//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package memfs

// chunkBytes is the size of a chunk: small, since the heap backs all of it.
const chunkBytes = 256 << 10

// allocChunk returns chunkBytes of zeroed memory.
func allocChunk() ([]byte, error) { return make([]byte, chunkBytes), nil }

// freeChunk leaves c to the garbage collector.
func freeChunk([]byte) {}
