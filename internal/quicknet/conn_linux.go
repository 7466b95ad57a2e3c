//go:build linux && !race

package quicknet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// mostBytes is the size of the longest transfer that is not announced: sending as many bytes to
// another process of the machine takes less than 100 µs.
const mostBytes = 64 << 10

// conn is a TCP connection.
type conn struct {
	*net.TCPConn
	raw       syscall.RawConn
	announcer *announcer
	in, out   transfer
}

// transfer is the running call of one direction.
type transfer struct {
	mu   sync.Mutex // held by the call
	p    []byte
	n    int // bytes transferred
	err  syscall.Errno
	call func(fd uintptr) (done bool) // allocated once
}

func quick(tcp *net.TCPConn, a *announcer) net.Conn {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return tcp
	}
	c := &conn{TCPConn: tcp, raw: raw, announcer: a}
	c.in.call, c.out.call = c.in.read, c.out.write
	return c
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 || c.announcer.due() {
		return c.TCPConn.Read(p)
	}
	n, err := c.in.run(p[:min(len(p), mostBytes)], c.raw.Read)
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	return n, c.describe("read", err)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if len(p) == 0 || len(p) > mostBytes || c.announcer.due() {
		return c.TCPConn.Write(p)
	}
	n, err := c.out.run(p, c.raw.Write)
	return n, c.describe("write", err)
}

// run transfers p. when calls its argument until it returns true, whenever the socket is ready.
func (t *transfer) run(p []byte, when func(func(fd uintptr) (done bool)) error) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p, t.n, t.err = p, 0, 0
	err := when(t.call)
	t.p = nil
	if err == nil && t.err != 0 {
		err = t.err
	}
	return t.n, err
}

// read reads once.
func (t *transfer) read(fd uintptr) (done bool) {
	n, err := unannounced(syscall.SYS_READ, fd, t.p)
	if err == syscall.EAGAIN {
		return false
	}
	t.n, t.err = n, err
	return true
}

// write writes the rest.
func (t *transfer) write(fd uintptr) (done bool) {
	for t.n < len(t.p) {
		n, err := unannounced(syscall.SYS_WRITE, fd, t.p[t.n:])
		if err == syscall.EAGAIN {
			return false
		}
		if t.n += n; err != 0 {
			t.err = err
			break
		}
	}
	return true
}

// unannounced makes a system call that must not block.
func unannounced(call, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, err := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if err == 0 {
			return int(n), 0
		}
		if err != syscall.EINTR {
			return 0, err
		}
	}
}

// describe returns the error that package net would return.
func (c *conn) describe(op string, err error) error {
	if err == nil {
		return nil
	}
	var waiting *net.OpError
	if errors.As(err, &waiting) { // of syscall.RawConn
		err = waiting.Err
	} else {
		err = os.NewSyscallError(op, err)
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
