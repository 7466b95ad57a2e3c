package fastserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tabletop-emu/tabletop/internal/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handlerFunc is a handler.
type handlerFunc func(ctx context.Context, r *exchange.Request, a *exchange.Answer)

func (f handlerFunc) Serve(ctx context.Context, r *exchange.Request, a *exchange.Answer) {
	f(ctx, r, a)
}

// pipes is a listener of connections in virtual time.
type pipes struct {
	net.Listener
	conns chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p.conns)
	return nil
}

// atWork is a server with its clients.
type atWork struct {
	*Server
	pipes pipes
	ended chan error
}

// start serves a handler. It must run in a bubble of synctest.
func start(t *testing.T, handler handlerFunc) *atWork {
	t.Helper()
	r := &atWork{
		Server: New(Options{Handler: handler, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), MaxHeadBytes: 20 << 10, HeadTime: time.Minute}),
		pipes:  pipes{conns: make(chan net.Conn)}, ended: make(chan error, 1),
	}
	go func() { r.ended <- r.Serve(r.pipes) }()
	return r
}

// client is a connection to a server.
type client struct {
	net.Conn
	in *bufio.Reader
}

func (r *atWork) client() *client {
	ours, theirs := net.Pipe()
	r.pipes.conns <- theirs
	return &client{ours, bufio.NewReader(ours)}
}

// stop stops a server without requests.
func (r *atWork) stop(t *testing.T) {
	t.Helper()
	if err := r.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-r.ended; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve returns %v", err)
	}
}

// say sends text.
func (c *client) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		t.Error(err)
	}
}

// hears checks the status and the body of the next answer, and whether the connection then ends.
func (c *client) hears(t *testing.T, status int, want string, ends bool) {
	t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || string(body) != want || resp.Close != ends {
		t.Errorf("answered with %d %q, ends: %v, error %v; want %d %q, ends: %v", resp.StatusCode, body, resp.Close, err, status, want, ends)
	}
	if ends {
		if rest, err := io.ReadAll(c.in); len(rest) > 0 || err != nil {
			t.Errorf("the connection ends with %q, %v", rest, err)
		}
	}
}

const (
	get  = "GET / HTTP/1.1\nHost: h\n\n"
	post = "POST / HTTP/1.1\nHost: h\nContent-Length: 4\n\n"
)

// echo answers with the body, or with the error of reading it.
func echo(_ context.Context, r *exchange.Request, a *exchange.Answer) {
	a.Status = http.StatusOK
	if r.Body == nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	a.Body = body
	if err != nil {
		a.Status, a.Body = http.StatusBadRequest, []byte(err.Error())
	}
}

// A head has a time limit, from its first byte. A body has none, and neither does an idle client.
func TestServer_Times(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echo)
		defer s.stop(t)
		silent, slow, patient := s.client(), s.client(), s.client()
		slow.say(t, "GET / HT")
		time.Sleep(59 * time.Second)
		slow.say(t, "TP")
		began := time.Now()
		for _, c := range []*client{silent, slow} {
			c.hears(t, http.StatusRequestTimeout, "408 Request Timeout", true)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("refused after another %v", took)
		}
		patient.Close()

		patient = s.client()
		for range 2 {
			patient.say(t, post)
			for _, part := range []string{"a", "bc", "d"} {
				time.Sleep(time.Hour)
				patient.say(t, part)
			}
			patient.hears(t, http.StatusOK, "abcd", false)
			time.Sleep(time.Hour)
		}
	})
}

// An operation ends when its client leaves. A client that stays gets its answer, also to the
// request that it sends meanwhile.
func TestServer_ClientLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := make(chan time.Duration)
		s := start(t, func(ctx context.Context, r *exchange.Request, a *exchange.Answer) {
			if r.Body == nil {
				time.Sleep(time.Hour)
				a.Status, a.Body = http.StatusOK, []byte("late")
				if err := ctx.Err(); err != nil {
					a.Body = []byte(err.Error())
				}
				return
			}
			echo(ctx, r, a)
			began := time.Now()
			<-ctx.Done()
			left <- time.Since(began)
		})
		defer s.stop(t)
		for range 2 { // the look starts again after a pause
			leaves := s.client()
			leaves.say(t, post+"abcd")
			time.Sleep(time.Second)
			leaves.Close()
			if after := <-left; after != time.Second {
				t.Errorf("the operation ends after %v", after)
			}
			time.Sleep(time.Minute)
		}
		for _, next := range []bool{false, true} {
			stays := s.client()
			stays.say(t, get)
			time.Sleep(time.Minute)
			if next {
				go stays.say(t, get)
			}
			stays.hears(t, http.StatusOK, "late", false)
			if !next {
				stays.say(t, get)
			}
			stays.hears(t, http.StatusOK, "late", false)
			stays.Close()
		}
	})
}

// A stop waits for running requests, and ends idle connections and halves of requests.
func TestServer_Shutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, func(ctx context.Context, _ *exchange.Request, a *exchange.Answer) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			a.Status = http.StatusOK
		})
		asks, half, idle := s.client(), s.client(), s.client()
		asks.say(t, get)
		half.say(t, "GET")
		synctest.Wait()
		began := time.Now()
		stopped := make(chan error)
		go func() { stopped <- s.Shutdown(t.Context()) }()
		for _, c := range []*client{half, idle} {
			if text, err := io.ReadAll(c.in); err != nil || len(text) > 0 {
				t.Errorf("it ends with %q, %v", text, err)
			}
		}
		asks.hears(t, http.StatusOK, "", true)
		if err := <-stopped; err != nil || time.Since(began) != time.Hour {
			t.Errorf("stopped after %v: %v", time.Since(began), err)
		}
		if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve returns %v", err)
		}

		// It also waits for an answer that is being written.
		s = start(t, func(_ context.Context, _ *exchange.Request, a *exchange.Answer) {
			a.Status, a.Body = http.StatusOK, []byte("whole")
		})
		asks = s.client()
		asks.say(t, get)
		synctest.Wait()
		go func() { stopped <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		asks.hears(t, http.StatusOK, "whole", false)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		<-s.ended

		// After the time of the stop, Close ends the request.
		s = start(t, func(ctx context.Context, _ *exchange.Request, _ *exchange.Answer) { <-ctx.Done() })
		asks = s.client()
		asks.say(t, get)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown returns %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-s.ended
	})
}

// A panic ends its connection, with an answer.
func TestServer_Panic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, func(_ context.Context, r *exchange.Request, a *exchange.Answer) {
			a.Set("X", "1")
			if r.Path == "/broken" {
				panic("broken")
			}
			a.Status = http.StatusOK
		})
		defer s.stop(t)
		broken, other := s.client(), s.client()
		broken.say(t, strings.Replace(get, "/", "/broken?a=b", 1))
		broken.hears(t, http.StatusInternalServerError, "", true)
		other.say(t, get)
		other.hears(t, http.StatusOK, "", false)
	})
}

// The rest of a short body is read, so that the connection serves another request.
func TestServer_UnreadBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, func(_ context.Context, _ *exchange.Request, a *exchange.Answer) { a.Status = http.StatusOK })
		defer s.stop(t)
		c := s.client()
		c.say(t, post+"abcd")
		c.hears(t, http.StatusOK, "", false)
		long := strings.Repeat("a", maxUnreadBytes+10)
		go func() {
			_, _ = io.WriteString(c, strings.ReplaceAll("POST / HTTP/1.1\nHost: h\nContent-Length: 1000000\n\n", "\n", "\r\n")+long)
		}()
		c.hears(t, http.StatusOK, "", true)
	})
}

// A value of a header cannot begin another header.
func TestServer_HeaderLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, func(_ context.Context, r *exchange.Request, a *exchange.Answer) {
			a.Status = http.StatusOK
			a.Set("x-Odd", "a\r\nb: "+r.Header.Get("x-long"))
		})
		defer s.stop(t)
		c := s.client()
		long := strings.Repeat("v", 3*bufferBytes)
		for range 2 { // a head that is larger than the buffer, twice
			go c.say(t, "GET / HTTP/1.1\nHost: h\nX-Long: "+long+"\n\n")
			resp, err := http.ReadResponse(c.in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.Header.Get("X-Odd"); got != "a  b: "+long {
				t.Errorf("the header is %.20q", got)
			}
			_ = resp.Body.Close()
		}
	})
}

// TLS clients are served and watched like others. A client that speaks plain text is told so.
func TestServer_TLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	certified.Close()
	synctest.Test(t, func(t *testing.T) {
		left := make(chan error)
		s := start(t, func(ctx context.Context, r *exchange.Request, a *exchange.Answer) {
			select {
			case <-time.After(time.Hour):
				a.Status, a.Body = http.StatusOK, []byte("late")
			case <-ctx.Done():
				left <- ctx.Err()
			}
		})
		defer s.stop(t)
		secure := func() *client {
			ours, theirs := net.Pipe()
			s.pipes.conns <- tls.Server(theirs, &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12})
			c := tls.Client(ours, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is that of a test
			return &client{c, bufio.NewReader(c)}
		}
		stays, leaves := secure(), secure()
		stays.say(t, get)
		leaves.say(t, get)
		time.Sleep(time.Minute)
		go func() { _ = leaves.Close() }()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the operation ends with %v", err)
		}
		stays.hears(t, http.StatusOK, "late", false)
		stays.say(t, get)
		stays.hears(t, http.StatusOK, "late", false)
		_ = stays.Close()

		ours, theirs := net.Pipe()
		s.pipes.conns <- tls.Server(theirs, &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12})
		go func() { _, _ = io.WriteString(ours, get) }()
		text, err := io.ReadAll(ours)
		if err != nil || !strings.HasSuffix(string(text), "\r\n\r\nClient sent an HTTP request to an HTTPS server.\n") {
			t.Errorf("plain text is answered with %q, %v", text, err)
		}
	})
}
