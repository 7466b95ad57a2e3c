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
	// holdMargin is how long before the deadline of go test a held test goes on.
	holdMargin = 5 * time.Second
	// holdVariable, if it is set in the environment, holds tests that failed.
	holdVariable = "TABLETOP_HOLD"
)

// WithConsole keeps the requests of both endpoints and counts which keys they are to, for the console that
// [Env.Hold] opens. With TABLETOP_HOLD=1 in the environment a test that has failed is held at its end.
func WithConsole() Option { return func(c *config) { c.observed = control.NewRequests() } }

// Hold stops here with all that the test has made, and prints to standard error where the console shows it:
// a page on a port of this machine, with a token of its own. It prints that to the terminal too where standard error
// is none, for go test keeps back what tests of named packages print, unless it is given -v. Hold returns when somebody
// pushes the page's button or Ctrl-C, and shortly before the test would run out of time, which it says: go test
// -timeout 0 gives as much as is wanted. The environment must have been started with [WithConsole].
func (e *Env) Hold(tb testing.TB) {
	tb.Helper()
	e.hold(tb, screen{})
}

// screen is standard error and, where that is a file or a pipe, the terminal of the process, if it has one.
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

// holdFailed is the end of a test with a console.
func (e *Env) holdFailed() {
	if e.server.TB().Failed() && os.Getenv(holdVariable) != "" {
		e.hold(e.server.TB(), screen{})
	}
}

func (e *Env) hold(tb testing.TB, out io.Writer) {
	tb.Helper()
	if e.observed == nil {
		tb.Fatal("testkit: Hold: the environment has no console, start it with testkit.WithConsole()")
	}
	ctx, release := signal.NotifyContext(e.server.Context(), os.Interrupt)
	defer release()
	until := ""
	if t, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if at, ok := t.Deadline(); ok {
			at = at.Add(-holdMargin)
			until = ", and by itself at " + at.Format(time.TimeOnly) + ", before the time of go test is over: -timeout 0 takes that away"
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, at)
			defer cancel()
		}
	}
	token := rand.Text()
	api := control.New(control.Options{
		Lab: e.server.Lab(), Endpoint: e.ddb, Requests: e.observed, Token: token, Version: "testkit", Held: tb.Name(), Release: release,
		Bigtable: e.Addr(), DynamoDB: e.DynamoDBURL(),
	})
	lis := e.server.Listen()
	web := &http.Server{Handler: api, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(lis) }()
	_, _ = fmt.Fprintf(out, "%s is held: http://%s/#token=%s\nIt goes on by the button of that page or Ctrl-C%s.\n", tb.Name(), lis.Addr(), token, until)
	var err error
	select {
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_, _ = fmt.Fprintf(out, "%s goes on: the time of go test is nearly over.\n", tb.Name())
		}
	case err = <-served:
		served <- err
	}
	err = api.Close() // ends what has no end
	last, cancel := context.WithTimeout(context.Background(), holdMargin/2)
	defer cancel()
	if web.Shutdown(last) != nil { // a client that does not read
		err = errors.Join(err, web.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		tb.Errorf("testkit: Hold: %v", err)
	}
}
