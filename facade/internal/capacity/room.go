package capacity

import "sync"

// Room is how many bytes there still is room for in an answer. It is safe for concurrent use.
type Room struct {
	mu   sync.Mutex
	left int
}

// NewRoom returns an empty room of so many bytes.
func NewRoom(bytes int) *Room { return &Room{left: bytes} }

// Take reports whether there was room for an item. After one that had none there is none for others.
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
