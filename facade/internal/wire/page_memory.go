package wire

import (
	"bytes"
	"sync"
)

// PageMemory is the memory of answers that were written, in which others are
// made: those of a page of items are the largest of what a request takes.
type PageMemory struct{ pool sync.Pool }

// What is kept of answers. Few pages are larger than 1 MB, and those may be much.
const (
	leastPageMemory = 16 << 10
	mostPageMemory  = 2 << 20
)

// Take returns memory for an answer, empty: what an earlier one was made in, if there
// is one.
func (m *PageMemory) Take() []byte {
	if b, ok := m.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, leastPageMemory)
}

// Detached is an answer that its caller may keep: b, or a copy where the memory
// of b is for other pages.
func (m *PageMemory) Detached(b []byte) []byte {
	if cap(b) < leastPageMemory || cap(b) > mostPageMemory {
		return b
	}
	defer m.GiveBack(b)
	return bytes.Clone(b)
}

// GiveBack takes an answer that nobody has any more.
func (m *PageMemory) GiveBack(b []byte) {
	if cap(b) >= leastPageMemory && cap(b) <= mostPageMemory {
		kept := b // not b itself, which would be on the heap for every answer
		m.pool.Put(&kept)
	}
}
