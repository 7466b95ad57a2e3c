package pending

import "sync"

// Broadcast wakes callers that wait for an event. The zero value is ready to use. It is safe for
// concurrent use.
type Broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed by the event; nil: no caller waits
}

// Next returns a channel that the next event closes.
func (b *Broadcast) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Notify closes the channels that Next returned.
func (b *Broadcast) Notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
