package capacity

import "sync"

// Room is how many bytes there still is room for in an answer. It is safe for concurrent use.
type Room struct {
	mu   sync.Mutex
	left int
}

// NewRoom returns an empty room of the given size.
func NewRoom(bytes int) *Room { return &Room{left: bytes} }

// Take reports whether an item fits. After the first that does not fit, no other fits either.
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
