package live

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// relayDelay is the delay of each direction, for round trips of 20 ms.
const relayDelay = 10 * time.Millisecond

// relay passes connections on to a server.
type relay struct {
	address string
	to      string
	delay   time.Duration // of each direction

	mu    sync.Mutex
	conns map[*passed]bool
	mute  chan struct{} // closed unless answers are held back
}

// passed is a connection through a relay.
type passed struct {
	client, server net.Conn
	end            context.CancelFunc
}

func (p *passed) close() {
	p.end()
	_ = p.client.Close()
	_ = p.server.Close()
}

// relayTo starts a relay.
func relayTo(t *testing.T, to string, delay time.Duration) *relay {
	t.Helper()
	lis, err := net.Listen("tcp", ownAddress())
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: lis.Addr().String(), to: to, delay: delay, conns: map[*passed]bool{}, mute: make(chan struct{})}
	close(r.mute)
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			client, err := lis.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { r.pass(client) })
		}
	})
	t.Cleanup(func() {
		_ = lis.Close()
		r.cut()
		passing.Wait()
	})
	return r
}

// pass connects a client with the server until one of them ends.
func (r *relay) pass(client net.Conn) {
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = client.Close()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &passed{client, server, cancel}
	r.mu.Lock()
	r.conns[p] = true
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { r.carry(ctx, p, client, server, false) })
	both.Go(func() { r.carry(ctx, p, server, client, true) })
	both.Wait()
	r.mu.Lock()
	delete(r.conns, p)
	r.mu.Unlock()
}

// chunk is data that is due at a time.
type chunk struct {
	data []byte
	due  time.Time
}

// carry copies one direction, and closes the connection at its end.
func (r *relay) carry(ctx context.Context, p *passed, from io.Reader, to io.Writer, answers bool) {
	defer p.close()
	chunks := make(chan chunk, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer p.close()
		for c := range chunks {
			if r.wait(ctx, c.due, answers) != nil {
				return
			}
			if _, err := to.Write(c.data); err != nil {
				return
			}
		}
	})
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n > 0 {
			select {
			case chunks <- chunk{data[:n], time.Now().Add(r.delay)}:
			case <-ctx.Done():
				err = errors.Join(err, ctx.Err())
			}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	writing.Wait()
}

// wait waits until data is due, and until answers are not held back.
func (r *relay) wait(ctx context.Context, due time.Time, answers bool) error {
	if r.delay > 0 {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !answers {
		return nil
	}
	r.mu.Lock()
	mute := r.mute
	r.mu.Unlock()
	select {
	case <-mute:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.conns {
		p.close()
	}
}

// silence holds all answers back until the returned function cuts the connections.
func (r *relay) silence() (end func()) {
	held := make(chan struct{})
	r.mu.Lock()
	r.mute = held
	r.mu.Unlock()
	return func() {
		r.cut()
		close(held)
	}
}
