package capacity

import "sync"

// Room is the remaining bytes of an answer. It is safe for concurrent use.
type Room struct {
	mu   sync.Mutex
	left int
}

// NewRoom returns an empty room of the given size.
func NewRoom(bytes int) *Room { return &Room{left: bytes} }

// Take takes the bytes of an item, and reports whether it fits. After the first item that
// does not fit, no other fits.
func (r *Room) Take(bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.left {
		r.left = 0
		return false
	}
	r.left -= bytes
	return true
}
