package fastserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tabletop-emu/tabletop/internal/exchange"
)

const (
	// bufferBytes is the memory of a connection for input. A larger head takes more.
	bufferBytes = 4 << 10
	// mostCopiedBytes is the largest body that is written together with its head.
	mostCopiedBytes = 32 << 10
	// maxUnreadBytes is the size of the rest of a body that is read so that the connection can
	// serve another request. Package net/http has the same bound.
	maxUnreadBytes = 256 << 10
	// lingerTime is the time in which a client can read an answer before its connection closes,
	// although it still sends.
	lingerTime = 500 * time.Millisecond
	// withoutLength is fasthttp's length of a body that neither a length nor chunks announce.
	withoutLength = -2
)

// conn is a connection of a client. Only its goroutine uses it, except for the fields of watch.go.
type conn struct {
	net.Conn
	server *Server
	ctx    context.Context // ends when the client leaves, or with the connection
	cancel context.CancelFunc
	in     *bufio.Reader // reads through Read

	head   fasthttp.RequestHeader
	inHead bool // a head is being read
	timed  bool // its deadline is set
	old    bool // the request is of HTTP/1.0

	text    []byte // of the head; reused
	fields  exchange.Fields
	request exchange.Request
	answer  exchange.Answer
	body    body
	ending  bool // no other request follows

	watcher
}

func newConn(s *Server, accepted net.Conn) *conn {
	c := &conn{Conn: accepted, server: s}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.in = bufio.NewReaderSize(c, bufferBytes)
	c.request.Local = accepted.LocalAddr()
	c.ended = make(chan struct{}, 1)
	return c
}

// now returns the wall time of deadlines.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above

// Read implements net.Conn, for c.in. A head that does not arrive at once has a deadline.
func (c *conn) Read(p []byte) (int, error) {
	if n, err := c.take(p); n > 0 || err != nil {
		return n, err
	}
	if c.inHead && !c.timed {
		c.setHeadDeadline()
	}
	return c.Conn.Read(p)
}

func (c *conn) setHeadDeadline() {
	c.timed = true
	_ = c.SetReadDeadline(now().Add(c.server.opts.HeadTime)) // a closed connection fails to read
}

// serve answers the requests of the connection.
func (c *conn) serve() {
	c.setHeadDeadline() // for the first request
	for !c.ending && !c.server.stopping.Load() && c.next() {
		if c.respond() != nil {
			return
		}
		if idle := c.server.opts.Idle; idle != nil && !c.ending {
			idle(c.Conn)
		}
	}
	if c.body.open || c.unread || c.in.Buffered() > 0 {
		c.linger()
	}
}

// linger waits until the client has read the answer: a connection that closes with unread input
// may be reset, which discards the answer.
func (c *conn) linger() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the client may have gone
	}
	_ = c.SetReadDeadline(now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.Conn, maxUnreadBytes)
}

// next reads the head of a request. It reports whether the request can be answered; otherwise it has
// refused it, or the client has left.
func (c *conn) next() bool {
	c.body.open = false
	if _, err := c.in.Peek(1); err != nil {
		if isTimeout(err) {
			c.refuse(http.StatusRequestTimeout)
		}
		return false
	}
	c.inHead = true
	err := c.readHead()
	if c.timed {
		c.timed = false
		_ = c.SetReadDeadline(time.Time{})
	}
	c.inHead = false
	status := 0
	switch tooLarge := (*fasthttp.ErrSmallBuffer)(nil); {
	case err == nil:
		status = c.receive()
	case errors.Is(err, net.ErrClosed): // by a stop
	case errors.As(err, &tooLarge):
		status = http.StatusRequestHeaderFieldsTooLarge
	case isTimeout(err):
		status = http.StatusRequestTimeout
	default:
		status = http.StatusBadRequest
	}
	if status != 0 {
		c.refuse(status)
	}
	return err == nil && status == 0
}

func isTimeout(err error) bool {
	var failed net.Error
	return errors.As(err, &failed) && failed.Timeout()
}

// errBareLines is the error of a head whose lines end in LF alone, which fasthttp would wait for.
var errBareLines = errors.New("the lines of the head end in LF instead of CRLF")

// readHead reads a head into c.head. A head that is larger than the input buffer gets a larger one.
func (c *conn) readHead() error {
	arrived, err := c.in.Peek(c.in.Buffered())
	if err == nil && bytes.Contains(arrived, []byte("\n\n")) && !bytes.Contains(arrived, []byte("\r\n\r\n")) {
		return errBareLines
	}
	err = c.head.Read(c.in)
	if tooLarge := (*fasthttp.ErrSmallBuffer)(nil); errors.As(err, &tooLarge) && c.in.Size() < c.server.opts.MaxHeadBytes {
		arrived, _ := c.in.Peek(c.in.Buffered()) // all of it is buffered
		c.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(arrived)), c), c.server.opts.MaxHeadBytes)
		err = c.head.Read(c.in)
	}
	return err
}

// refuse answers a request that the handler does not see, and ends the connection.
func (c *conn) refuse(status int) {
	text := strconv.Itoa(status) + " " + http.StatusText(status)
	c.answer.Reset()
	c.answer.Status, c.answer.Body = status, []byte(text)
	if status == http.StatusExpectationFailed {
		c.answer.Body = nil
	} else {
		c.answer.Set("Content-Type", "text/plain; charset=utf-8")
	}
	c.ending, c.old = true, false
	_ = c.write(false) // the client may have gone
	c.body.open = true // serve lingers
}

// receive fills c.request from c.head. The status is 0 if the handler can answer the request.
func (c *conn) receive() (status int) {
	h := &c.head
	r := &c.request
	if !c.readFields() {
		return http.StatusBadRequest
	}
	c.ending, c.old = h.ConnectionClose(), r.Proto == "HTTP/1.0"
	if !strings.HasPrefix(r.Proto, "HTTP/1.") {
		return http.StatusHTTPVersionNotSupported
	}
	if h.ContentLength() == withoutLength && hasTransferEncoding(h.RawHeaders()) {
		return http.StatusBadRequest
	}
	r.Path, r.Query = r.Target, ""
	if r.Target != "/" {
		u, err := url.ParseRequestURI(r.Target)
		if err != nil {
			return http.StatusBadRequest
		}
		r.Path, r.Query = u.EscapedPath(), u.RawQuery
		if u.Host != "" {
			r.Host = u.Host
		}
	}
	c.body = body{conn: c}
	r.Body, r.Length = nil, int64(h.ContentLength())
	switch {
	case r.Length == -1:
		c.body.chunks = httputil.NewChunkedReader(c.in)
	case r.Length > 0:
		c.body.left = r.Length
	default: // none is announced
		r.Length = 0
	}
	if c.body.open = r.Length != 0; c.body.open {
		r.Body = &c.body
	}
	if expect := r.Header.Get("Expect"); expect != "" {
		if !strings.EqualFold(expect, "100-continue") {
			return http.StatusExpectationFailed
		}
		c.body.awaited = c.body.open && h.IsHTTP11()
	}
	return 0
}

// readFields copies the head into c.request. Its texts share one string, so they stay valid. valid is
// false if a name has a space, which fasthttp accepts.
func (c *conn) readFields() (valid bool) {
	h, r := &c.head, &c.request
	buf := append(append(append(append(c.text[:0], h.Method()...), h.RequestURI()...), h.Protocol()...), h.Host()...)
	for name, value := range h.All() {
		buf = append(append(buf, name...), value...)
	}
	c.text = buf
	text := string(buf)
	take := func(n int) (part string) {
		part, text = text[:n], text[n:]
		return part
	}
	r.Method, r.Target, r.Proto, r.Host = take(len(h.Method())), take(len(h.RequestURI())), take(len(h.Protocol())), take(len(h.Host()))
	r.HeadBytes = len(r.Method) + len(r.Target) + len(r.Proto) + len("Host: ") + len(r.Host)
	c.fields = c.fields[:0]
	for name, value := range h.All() {
		f := exchange.Field{Name: take(len(name)), Value: take(len(value))}
		if strings.IndexByte(f.Name, ' ') >= 0 {
			return false
		}
		switch f.Name {
		case fasthttp.HeaderHost, fasthttp.HeaderTransferEncoding: // not among the headers, as in net/http
		default:
			r.HeadBytes += len(f.Name) + len(": ") + len(f.Value)
			c.fields = append(c.fields, f)
		}
	}
	r.Header = &c.fields
	return true
}

// hasTransferEncoding reports whether header lines have a Transfer-Encoding. fasthttp drops one that is
// not chunked, such as identity, and with it the knowledge that a body may follow.
func hasTransferEncoding(lines []byte) bool {
	for line := range bytes.Lines(lines) {
		if name, _, ok := bytes.Cut(line, []byte(":")); ok && strings.EqualFold(string(name), fasthttp.HeaderTransferEncoding) {
			return true
		}
	}
	return false
}

// respond calls the handler and writes its answer.
func (c *conn) respond() error {
	if !c.body.open {
		c.arrived()
	}
	c.answer.Reset()
	c.handle()
	if c.body.open && !c.body.awaited { // a client that writes before it reads must get the answer
		_, _ = io.CopyN(io.Discard, &c.body, maxUnreadBytes+1)
	}
	if c.answer.Close || c.body.open || c.server.stopping.Load() {
		c.ending = true
	}
	err := c.write(c.request.Method == http.MethodHead)
	c.answer.Written()
	c.leave(c) // only now: a stop ends connections without an operation
	return err
}

// handle calls the handler. If it panics, the answer is an internal error.
func (c *conn) handle() {
	defer func() {
		if p := recover(); p != nil {
			c.server.logPanic(p)
			c.answer.Reset()
			c.answer.Status, c.answer.Close = http.StatusInternalServerError, true
		}
	}()
	c.server.opts.Handler.Serve(c.ctx, &c.request, &c.answer)
}

// arrived notes that the request is complete.
func (c *conn) arrived() {
	if arrived := c.server.opts.Arrived; arrived != nil {
		arrived(c.Conn)
	}
	c.enter(c.server)
}

// outputs are buffers for answers.
var outputs = sync.Pool{New: func() any { return new([]byte) }}

// write writes c.answer.
func (c *conn) write(withoutBody bool) error {
	memory, a := outputs.Get().(*[]byte), &c.answer
	defer outputs.Put(memory)
	out := append((*memory)[:0], "HTTP/1.1 "...)
	if c.old {
		out[len("HTTP/1.")] = '0'
	}
	out = append(strconv.AppendInt(out, int64(a.Status), 10), ' ')
	out = append(append(out, http.StatusText(a.Status)...), "\r\n"...)
	for _, f := range a.Header {
		out = append(append(out, f.Name...), ": "...)
		out = append(append(out, oneLine(f.Value)...), "\r\n"...)
	}
	out = strconv.AppendInt(append(out, "Content-Length: "...), int64(len(a.Body)), 10)
	switch {
	case c.ending:
		out = append(out, "\r\nConnection: close"...)
	case c.old:
		out = append(out, "\r\nConnection: keep-alive"...)
	}
	out = append(out, "\r\n\r\n"...)
	body := a.Body
	if withoutBody {
		body = nil
	}
	if len(body) <= mostCopiedBytes {
		out, body = append(out, body...), nil
	}
	*memory = out
	_, err := c.Write(out)
	if err == nil && body != nil {
		_, err = c.Write(body)
	}
	return err
}

// oneLine returns the value of a header without line ends, which would begin another header.
func oneLine(value string) string {
	if strings.IndexByte(value, '\r') < 0 && strings.IndexByte(value, '\n') < 0 {
		return value
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(value)
}

// body is the body of a request.
type body struct {
	conn    *conn
	open    bool // it has more
	awaited bool // the client waits for 100 Continue
	left    int64
	chunks  io.Reader // nil: the body has left bytes
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if !b.open {
		return 0, io.EOF
	}
	if b.awaited {
		b.awaited = false
		if _, err := io.WriteString(b.conn.Conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return 0, err
		}
	}
	if b.chunks == nil {
		n, err = b.conn.in.Read(p[:min(int64(len(p)), b.left)])
		switch b.left -= int64(n); {
		case errors.Is(err, io.EOF):
			return n, io.ErrUnexpectedEOF
		case err != nil || b.left > 0:
			return n, err
		}
		err = io.EOF
	} else if n, err = b.chunks.Read(p); errors.Is(err, io.EOF) {
		if failed := b.conn.head.ReadTrailer(b.conn.in); failed != nil {
			return n, io.ErrUnexpectedEOF
		}
	}
	if errors.Is(err, io.EOF) {
		b.open = false
		b.conn.arrived()
	}
	return n, err
}
