package capacity

import "sync"

// Room counts the bytes that still fit in a response. It is safe for concurrent use.
type Room struct {
	mu   sync.Mutex
	left int
}

// NewRoom returns a Room with the given number of free bytes.
func NewRoom(bytes int) *Room { return &Room{left: bytes} }

// Take reserves the bytes of an item, and reports whether the item fits. Once an item
// does not fit, Take rejects all later ones.
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
