package dynamodb

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
)

// delayed waits for the armed delays of a request, and returns the request to serve. They
// precede the other faults, and the caller holds no lock: a restore does not wait for them.
func (e *Endpoint) delayed(r *http.Request, wait func(context.Context, time.Duration) error) (*http.Request, error) {
	if !slices.ContainsFunc(e.faults.All(), delays) {
		return r, nil
	}
	req, ok, err := readRequest(r)
	if req.sent != nil {
		r = again(r, req.sent)
	}
	if err != nil || !ok {
		return r, err
	}
	return r, e.delay(r.Context(), &req, wait)
}

// delay waits for the delays of a request.
func (e *Endpoint) delay(ctx context.Context, req *dynamoDBRequest, wait func(context.Context, time.Duration) error) error {
	for _, f := range e.faults.All() {
		if delays(f) && (*spec)(f.Spec()).fits(req) && f.Strike() {
			if err := wait(ctx, f.Spec().Delay); err != nil {
				return err
			}
		}
	}
	return nil
}

func delays(f *fault.Fault) bool { return f.Spec().Effect == fault.DelayCall }

// sleep waits in real time, until the client disconnects or the lab ends: HTTP does not carry
// the client's deadline, so only a late answer shows it.
func (e *Endpoint) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.lab.Context().Done():
		return ErrClosed
	}
}
