package quicknet

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns a connection of a server and that of its client.
func pair(t *testing.T) (server net.Conn, client *net.TCPConn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(inner)
	defer func() { _ = l.Close() }()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialed.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server, dialed.(*net.TCPConn)
}

// TestConn_Transfer: all bytes arrive, in order, although they exceed the socket's buffers.
func TestConn_Transfer(t *testing.T) {
	t.Parallel()
	server, client := pair(t)
	sent := make([]byte, 16<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(sent)
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { // the client sends everything back
		if _, err := io.Copy(client, client); err != nil {
			t.Error(err)
		}
		_ = client.CloseWrite()
	})
	wait.Go(func() {
		sizes := rand.New(random)
		for rest := sent; len(rest) > 0; {
			n := min(len(rest), 1+sizes.IntN(80<<10))
			if wrote, err := server.Write(rest[:n]); wrote != n || err != nil {
				t.Errorf("wrote %d of %d bytes, error %v", wrote, n, err)
				break
			}
			rest = rest[n:]
		}
		_ = server.(interface{ CloseWrite() error }).CloseWrite()
	})
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back, want %d and the same; error %v", len(got), len(sent), err)
	}
}

// TestConn_WriteConcurrently: the bytes of a write stay together.
func TestConn_WriteConcurrently(t *testing.T) {
	t.Parallel()
	server, client := pair(t)
	const writers, writes, size = 8, 200, 4 << 10
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for range writes {
				if _, err := server.Write(bytes.Repeat([]byte{byte(w)}, size)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	block := make([]byte, size)
	for range writers * writes {
		if _, err := io.ReadFull(client, block); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(block, block[:1]) != size {
			t.Fatal("two writes are mixed")
		}
	}
	wait.Wait()
}

// TestConn_Errors: errors are those of package net.
func TestConn_Errors(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, err error, op string, want error) {
		t.Helper()
		var described *net.OpError
		if !errors.As(err, &described) || described.Op != op || described.Net != "tcp" || described.Addr == nil || !errors.Is(err, want) {
			t.Errorf("%v (%#v), want a %s error: %v", err, err, op, want)
		}
	}
	past := time.Unix(1, 0)
	t.Run("deadlines", func(t *testing.T) {
		t.Parallel()
		server, _ := pair(t)
		_ = server.SetDeadline(past)
		_, err := server.Read(make([]byte, 1))
		check(t, err, "read", os.ErrDeadlineExceeded)
		_, err = server.Write([]byte("a"))
		check(t, err, "write", os.ErrDeadlineExceeded)
	})
	t.Run("a deadline ends a read", func(t *testing.T) {
		t.Parallel()
		server, client := pair(t)
		one := make([]byte, 1)
		_, _ = client.Write([]byte("a"))
		if _, err := server.Read(one); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := server.Read(one)
			ended <- err
		}()
		_ = server.SetReadDeadline(past)
		check(t, <-ended, "read", os.ErrDeadlineExceeded)
		_ = server.SetReadDeadline(time.Time{})
		_, _ = client.Write([]byte("b"))
		if _, err := server.Read(one); err != nil || one[0] != 'b' {
			t.Errorf("read %q, error %v, after the deadline was removed", one, err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		server, _ := pair(t)
		ended := make(chan error)
		go func() {
			_, err := server.Read(make([]byte, 1))
			ended <- err
		}()
		_ = server.Close()
		check(t, <-ended, "read", net.ErrClosed)
		_, err := server.Write([]byte("a"))
		check(t, err, "write", net.ErrClosed)
	})
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		server, client := pair(t)
		_ = client.SetLinger(0)
		_ = client.Close()
		_, err := server.Read(make([]byte, 1))
		check(t, err, "read", syscall.ECONNRESET)
		_, err = server.Write([]byte("a"))
		check(t, err, "write", syscall.EPIPE)
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		server, _ := pair(t)
		if n, err := server.Read(nil); n != 0 || err != nil {
			t.Errorf("read %d bytes, error %v", n, err)
		}
		if n, err := server.Write(nil); n != 0 || err != nil {
			t.Errorf("wrote %d bytes, error %v", n, err)
		}
	})
}

// TestAnnouncer: of the calls of some milliseconds, one is announced.
func TestAnnouncer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Listen(nil).(*listener).announcer
		for range 3 {
			time.Sleep(announceEvery)
			synctest.Wait()
			if !a.due() {
				t.Error("a call after a pause is not announced")
			}
			for range 3 {
				if a.due() {
					t.Error("two calls are announced")
				}
			}
		}
	})
}
