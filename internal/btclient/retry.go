package btclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Retry configures retries after a transient error: the connection broke, or the server is moving
// the data (Unavailable, Aborted, a reset stream). If waits are configured, errors of a server that
// lacks resources or time (ResourceExhausted, DeadlineExceeded) are retried too.
type Retry struct {
	// Reads is the maximum number of consecutive retries of a read without a new row. Writes is the
	// maximum for an idempotent write. Both are at most 20.
	Reads, Writes int
	// Late is the maximum number of consecutive retries of an idempotent call that received no
	// response within Options.Deadline. These retries also count toward Reads or Writes. Until the
	// server has responded to any call, such a call is not retried, because the address may be
	// wrong. Default: 0.
	Late int
	// First is the wait before the first retry; each later wait is twice as long as the one before.
	// A wait that the server requests (RetryInfo) replaces it, up to Options.Deadline. Default: no
	// waits.
	First time.Duration
	// Jitter returns a number in [0, 1). A wait is shortened by half of that fraction, so that
	// clients with the same error do not retry at the same time. Default: 0.
	Jitter func() float64
	// Sleep waits for a duration. Default: it returns at once.
	Sleep func(context.Context, time.Duration) error
	// Waiting is called before each Sleep, so that the user can be informed. Default: nothing is
	// called.
	Waiting func(Wait)
}

// maxRetries limits doubled waits to 2^20 times the first.
const maxRetries = 20

// Wait describes the wait before a retry.
type Wait struct {
	Table string
	Call  string        // "ReadRows", "MutateRows", "MutateRow"
	Err   error         // the error of the call
	Spent time.Duration // total of earlier waits of this call since its last progress
	Next  time.Duration // the wait that begins now
	Left  time.Duration // total of the remaining possible waits, including Next; then the call fails
}

// storeFailed is part of the error of Tabletop's own store after a full disk: it rejects all calls
// until it is opened again.
const storeFailed = "the store has failed and rejects all calls"

// passes reports whether an error of the server, or the connection, is transient.
func (r *Retry) passes(err error) bool {
	switch status.Code(err) { //nolint:exhaustive // all others are final
	case codes.Unavailable, codes.Aborted:
		return true
	case codes.ResourceExhausted, codes.DeadlineExceeded:
		return r.First > 0 && !strings.Contains(err.Error(), storeFailed)
	case codes.Internal: // https://github.com/googleapis/google-cloud-go/issues/6476 and 10207
		return strings.Contains(err.Error(), "RST_STREAM")
	default:
		return false
	}
}

// tries counts the tries of a call.
type tries struct {
	r           *Retry
	once        bool // the call is not idempotent
	most        int  // retries after the first try
	table, call string
	deadline    time.Duration // of a call with one answer; 0: none
	throttle    *throttle     // of the written rows; nil: none
	n           int           // consecutive retries so far
	late        int           // number of these after a *DeadlineError
	answered    *atomic.Bool  // of the Client
}

// reading returns the tries of a call that only reads.
func (c *Client) reading(table, call string) tries {
	return tries{r: &c.o.Retry, most: c.o.Retry.Reads, table: table, call: call, deadline: c.o.Deadline, answered: &c.answered}
}

// writing returns the tries of an idempotent write.
func (c *Client) writing(table, call string) tries {
	return tries{r: &c.o.Retry, most: c.o.Retry.Writes, table: table, call: call, deadline: c.o.Deadline, answered: &c.answered}
}

// ofRow returns t for a write of one row, which the throttle of c delays.
func (t tries) ofRow(c *Client) tries {
	t.throttle = c.throttle
	return t
}

// once returns the tries of a call that is not idempotent.
func (c *Client) once(table, call string) tries {
	return tries{r: &c.o.Retry, once: true, most: c.o.Retry.Writes, table: table, call: call, deadline: c.o.Deadline, answered: &c.answered}
}

// passes reports whether a call with the error err may be retried, with a chance to succeed.
func (t *tries) passes(err error) bool {
	if hopeless(err) && !t.answered.Load() {
		return false
	}
	if t.once {
		return neverSent(err)
	}
	if isLate(err) {
		return t.late < t.r.Late && t.answered.Load()
	}
	return t.r.passes(err)
}

// hopeless reports whether err means that the server speaks another protocol, or is not trusted.
// That is permanent, unless there was an answer before: then a proxy in between may cause it. A
// proxy that starts before its Bigtable may also cause it at first.
func hopeless(err error) bool {
	if status.Code(err) != codes.Unavailable {
		return false
	}
	text := err.Error()
	if strings.Contains(text, "no access token is available") { // the error of another server
		return false
	}
	return slices.ContainsFunc([]string{
		"looked like an HTTP/1.1 header", "certificate signed by unknown authority", "first record does not look like a TLS handshake",
	}, func(part string) bool { return strings.Contains(text, part) })
}

// reset starts the count again after progress.
func (t *tries) reset() { t.n, t.late = 0, 0 }

func isLate(err error) bool {
	late := (*DeadlineError)(nil)
	return errors.As(err, &late)
}

// again waits before the retry of a call with the error err. If there is no retry, it returns
// err or the error of the wait.
func (t *tries) again(ctx context.Context, err error) error {
	if t.n >= t.most || !t.passes(err) || ctx.Err() != nil {
		return err
	}
	full := t.r.First << t.n
	wait := full
	if requested, ok := pushback(err); ok && t.r.First > 0 {
		// An earlier retry would fail. The wait is at most that for an answer.
		wait = requested
		if t.deadline > 0 {
			wait = min(requested, t.deadline)
		}
	} else if t.r.Jitter != nil {
		wait -= time.Duration(t.r.Jitter() * float64(full) / 2)
	}
	t.n++
	if isLate(err) {
		t.late++
	}
	if t.r.Sleep == nil || wait <= 0 {
		return nil
	}
	if t.r.Waiting != nil {
		t.r.Waiting(Wait{
			Table: t.table, Call: t.call, Err: err,
			Spent: full - t.r.First, Next: wait, Left: max(wait, t.r.First<<t.most-full),
		})
	}
	return t.r.Sleep(ctx, wait)
}

// pushback returns the wait that the server requests before the retry of a call with the
// error err. Source: google/rpc/error_details.proto, RetryInfo.
func pushback(err error) (wait time.Duration, ok bool) {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

// DeadlineError is the error of a call that received no response within Options.Deadline. Its
// status is DeadlineExceeded.
type DeadlineError struct {
	Server string // address and instance
	Call   string // the RPC, such as ReadRows
	After  time.Duration
	Why    error // the reason why the call was not sent; nil if unknown
}

// Error returns a text that names the server, the call and the time.
func (e *DeadlineError) Error() string {
	text := fmt.Sprintf("no answer from %s to %s for %v", e.Server, e.Call, e.After)
	if e.Why != nil {
		text += ": " + e.Why.Error()
	}
	return text
}

// GRPCStatus returns the status for status.Code.
func (e *DeadlineError) GRPCStatus() *status.Status {
	return status.New(codes.DeadlineExceeded, e.Error())
}

// watch cancels the context of a call when the function that began it ends, or when an
// answer is late.
type watch struct {
	ctx    context.Context // the call's
	cancel context.CancelCauseFunc
	timer  *time.Timer // nil: there is no deadline
	after  time.Duration
	late   *DeadlineError

	answered *atomic.Bool // of the Client
}

// watch begins a call. It runs until heard is called, and again from hear on. The caller
// must call end.
func (c *Client) watch(ctx context.Context, call string, deadline time.Duration) watch {
	ctx, cancel := context.WithCancelCause(ctx)
	w := watch{ctx: ctx, cancel: cancel, answered: &c.answered}
	if deadline > 0 {
		late := &DeadlineError{Server: c.server, Call: call, After: deadline}
		w.late, w.after = late, deadline
		w.timer = time.AfterFunc(deadline, func() { cancel(late) })
	}
	return w
}

// hear starts the time for the next answer.
func (w *watch) hear() {
	if w.timer != nil {
		w.timer.Reset(w.after)
	}
}

// heard records an answer, and stops the time until the next call of hear.
func (w *watch) heard() {
	w.stop()
	setOnce(w.answered)
}

// setOnce sets a flag, without a write if it is already set.
func setOnce(flag *atomic.Bool) {
	if !flag.Load() {
		flag.Store(true)
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) end() {
	w.stop()
	w.cancel(nil)
}

// why returns the error of a call, or a DeadlineError if the call took too long. The DeadlineError then
// has the error as its reason, unless that is only the end of the call.
func (w *watch) why(err error) error {
	if err == nil || w.late == nil || !errors.Is(context.Cause(w.ctx), w.late) {
		return err
	}
	if code := status.Code(err); code != codes.Canceled && code != codes.DeadlineExceeded {
		w.late.Why = err
	}
	return w.late
}

// unary sends a request with one answer, with retries.
func unary[S, Req, Resp any](
	ctx context.Context, c *Client, t tries,
	send func(S, context.Context, *Req, ...grpc.CallOption) (*Resp, error), service S, req *Req,
) (*Resp, error) {
	for {
		p, err := t.throttle.enter(ctx, 1, t.deadline)
		if err != nil {
			return nil, err
		}
		resp, err := unaryOnce(ctx, c, t.call, t.deadline, send, service, req)
		t.throttle.leave(p, noRoom(err))
		if err == nil {
			return resp, nil
		}
		if err := t.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

func unaryOnce[S, Req, Resp any](
	ctx context.Context, c *Client, call string, deadline time.Duration,
	send func(S, context.Context, *Req, ...grpc.CallOption) (*Resp, error), service S, req *Req,
) (*Resp, error) {
	if deadline <= 0 {
		resp, err := send(service, ctx, req)
		if err == nil {
			setOnce(&c.answered)
		}
		return resp, err
	}
	w := c.watch(ctx, call, deadline)
	defer w.end()
	resp, err := send(service, w.ctx, req)
	if err == nil {
		w.heard()
	}
	return resp, w.why(err)
}
