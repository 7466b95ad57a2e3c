package control_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// fakeConn is the connection of a request: it records the answer and the deadlines. Its time
// stands still until a caller waits, and then jumps to the deadline; without a deadline the
// wait is endless.
type fakeConn struct {
	mu          sync.Mutex
	header      http.Header
	status      int
	text        strings.Builder
	read, write time.Time
	flushed     chan struct{} // receives a value for each flush, unless it is nil
	unread      bool          // the client has stopped reading
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

// stop makes the client stop reading.
func (c *fakeConn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = true
}

// slowBody is the body of a client that sends a part and then nothing.
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
