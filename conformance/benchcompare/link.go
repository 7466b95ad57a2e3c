package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// link makes a server seem further away: it forwards data in either direction after half of a
// round trip, however much it is.
type link struct {
	lis       net.Listener
	to        string
	roundTrip time.Duration
	elapsed   func() time.Duration

	working sync.WaitGroup
	mu      sync.Mutex // guards conns
	conns   []net.Conn // nil: closed
}

// newLink returns a listening link to a server.
func newLink(to string, roundTrip time.Duration) (*link, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{lis: lis, to: to, roundTrip: roundTrip, elapsed: stopwatch(), conns: []net.Conn{}}
	l.working.Go(l.accept)
	return l, nil
}

func (l *link) addr() string { return l.lis.Addr().String() }

// close ends all connections.
func (l *link) close() error {
	err := l.lis.Close()
	l.mu.Lock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.working.Wait()
	return err
}

// keep registers connections that close will close. It returns false if the link is already
// closed.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

func (l *link) accept() {
	for {
		near, err := l.lis.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		if !l.keep(near, far) {
			_ = near.Close()
			_ = far.Close()
			return
		}
		l.working.Go(func() { l.carry(near, far) })
		l.working.Go(func() { l.carry(far, near) })
	}
}

// parcel is data that arrived together, with the time of its delivery.
type parcel struct {
	bytes []byte
	due   time.Duration // on the link's clock
}

// parcels limits the data on the way.
const parcels = 4096

// carry forwards the data of one side until it ends.
func (l *link) carry(from io.Reader, to net.Conn) {
	way := make(chan parcel, parcels)
	l.working.Go(func() {
		defer func() { _ = to.Close() }()
		broken := false
		for p := range way {
			if broken {
				continue
			}
			if wait := p.due - l.elapsed(); wait > 0 {
				<-time.NewTimer(wait).C
			}
			_, err := to.Write(p.bytes)
			broken = err != nil
		}
	})
	defer close(way)
	for {
		b := make([]byte, 64<<10)
		n, err := from.Read(b)
		if n > 0 {
			way <- parcel{b[:n], l.elapsed() + l.roundTrip/2}
		}
		if err != nil {
			return // the other side notices
		}
	}
}
