package wire

import (
	"bytes"
	"sync"
)

// PageMemory reuses the memory of written responses for new ones, since pages of items
// are the largest allocations of a request.
type PageMemory struct{ pool sync.Pool }

// Bounds of the memory to reuse. Few pages are larger than 1 MB, but some are much larger.
const (
	leastPageMemory = 16 << 10
	mostPageMemory  = 2 << 20
)

// Take returns empty memory for a response, which is reused if possible.
func (m *PageMemory) Take() []byte {
	if b, ok := m.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, leastPageMemory)
}

// Detached returns a response that the caller may keep. It is b itself, or a copy if the
// memory of b may be reused.
func (m *PageMemory) Detached(b []byte) []byte {
	if cap(b) < leastPageMemory || cap(b) > mostPageMemory {
		return b
	}
	defer m.GiveBack(b)
	return bytes.Clone(b)
}

// GiveBack returns the memory of a response to m for reuse.
func (m *PageMemory) GiveBack(b []byte) {
	if cap(b) >= leastPageMemory && cap(b) <= mostPageMemory {
		kept := b // not b itself, which would escape to the heap for every answer
		m.pool.Put(&kept)
	}
}
