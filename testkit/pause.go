package testkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/control"
)

const (
	// pauseMargin is the time before the deadline of go test at which a paused test continues.
	pauseMargin = 5 * time.Second
	// pauseVariable names the environment variable that pauses failed tests.
	pauseVariable = "TABLETOP_PAUSE"
)

// WithConsole records the requests of both endpoints and counts the keys that they use, for the
// console that [Env.Pause] opens. If the environment variable TABLETOP_PAUSE is set, a failed test
// pauses at its end.
func WithConsole() Option { return func(c *config) { c.observed = control.NewRequests() } }

// Pause stops the test and opens the console on its current data, a web page on a local port with
// its own token. It prints the address to standard error. If standard error is a file or a pipe, it
// also prints the address to the terminal, because go test buffers the output of named packages
// without -v.
//
// Pause returns when the button on the page is clicked or Ctrl-C is pressed. It also returns
// shortly before the deadline of go test, and says so; go test -timeout 0 removes the deadline. The
// environment must have been started with [WithConsole].
func (e *Env) Pause(tb testing.TB) {
	tb.Helper()
	e.pause(tb, screen{})
}

// screen writes to standard error and, if that is a file or a pipe, to the terminal of the
// process, if it has one.
type screen struct{}

func (screen) Write(text []byte) (int, error) {
	if is, err := os.Stderr.Stat(); err == nil && is.Mode()&os.ModeCharDevice == 0 {
		if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
			_, _ = tty.Write(text)
			_ = tty.Close()
		}
	}
	return os.Stderr.Write(text)
}

// pauseFailed pauses a failed test at its end, or reports the missing option.
func (e *Env) pauseFailed() {
	switch tb := e.server.TB(); {
	case os.Getenv(pauseVariable) == "" || !tb.Failed():
	case e.observed == nil:
		tb.Logf("%s needs testkit.WithConsole()", pauseVariable)
	default:
		e.pause(tb, screen{})
	}
}

func (e *Env) pause(tb testing.TB, out io.Writer) {
	tb.Helper()
	e.server.Use(tb)
	if e.observed == nil {
		tb.Fatal("testkit: Pause: the environment has no console; start it with testkit.WithConsole()")
	}
	ctx, resume := signal.NotifyContext(e.server.Context(), os.Interrupt)
	defer resume()
	until := ""
	if t, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if at, ok := t.Deadline(); ok {
			at = at.Add(-pauseMargin)
			until = " It continues automatically at " + at.Format(time.TimeOnly) + ", before the deadline of go test; -timeout 0 removes the deadline."
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, at)
			defer cancel()
		}
	}
	token := rand.Text()
	api := control.New(control.Options{
		Lab: e.server.Lab(), Endpoint: e.ddb, Requests: e.observed, Token: token, Version: "testkit", Paused: tb.Name(), Resume: resume,
		Bigtable: e.Addr(), DynamoDB: e.DynamoDBURL(),
	})
	lis := e.server.Listen()
	web := &http.Server{Handler: api, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(lis) }()
	_, _ = fmt.Fprintf(out, "%s is paused: http://%s/#token=%s\nClick the button on that page or press Ctrl-C to continue.%s\n", tb.Name(), lis.Addr(), token, until)
	var err error
	select {
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_, _ = fmt.Fprintf(out, "%s continues: the deadline of go test is near.\n", tb.Name())
		}
	case err = <-served:
		served <- err
	}
	err = api.Close() // ends endless streams
	last, cancel := context.WithTimeout(context.Background(), pauseMargin/2)
	defer cancel()
	if web.Shutdown(last) != nil { // a client that does not read
		err = errors.Join(err, web.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		tb.Errorf("testkit: Pause: %v", err)
	}
}
