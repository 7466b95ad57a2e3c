package pending

import "testing"

func TestBroadcast(t *testing.T) {
	t.Parallel()
	var b Broadcast
	b.Notify() // no caller waits
	first, second := b.Next(), b.Next()
	b.Notify()
	<-first
	<-second
	select {
	case <-b.Next():
		t.Error("a later call of Next received an earlier notification")
	default:
	}
}
