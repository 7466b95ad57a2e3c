package control_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// fakeConn is the connection under a request: what was answered, and the deadlines that were set. Time stands
// still on it until somebody has to wait, and then goes to the deadline; without one it would wait for ever.
type fakeConn struct {
	mu          sync.Mutex
	header      http.Header
	status      int
	text        strings.Builder
	read, write time.Time
	flushed     chan struct{} // gets one for each flush, if it is not nil
	unread      bool          // the client reads no more
}

func (c *fakeConn) Header() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}

func (c *fakeConn) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func (c *fakeConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unread {
		if c.write.IsZero() {
			panic("this write would wait for ever")
		}
		return 0, os.ErrDeadlineExceeded
	}
	return c.text.Write(p)
}

func (c *fakeConn) FlushError() error {
	if c.flushed != nil {
		c.flushed <- struct{}{}
	}
	return nil
}

func (c *fakeConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	return nil
}

func (c *fakeConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	return nil
}

// stop lets the client read no more.
func (c *fakeConn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = true
}

// slowBody is the body of a client that sends some and then nothing.
type slowBody struct {
	*strings.Reader
	conn *fakeConn
}

func (b slowBody) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err != io.EOF {
		return n, err
	}
	if b.conn.read.IsZero() {
		panic("this read would wait for ever")
	}
	return 0, os.ErrDeadlineExceeded
}
