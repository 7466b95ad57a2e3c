package inproc

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// CheckAndMutateRows makes the calls of CheckAndMutateRow together, if the server can do that, and
// sets their results. The calls are independent, as if they ran concurrently. It returns false,
// without a call, if they must be made one by one: with Options.Clone, with an interceptor, or if the
// server decides so.
func (c *Channel) CheckAndMutateRows(ctx context.Context, reqs []*btpb.CheckAndMutateRowRequest, matched []bool, errs []error) (together bool) {
	handle := c.opts.CheckAndMutateRows
	if handle == nil || c.opts.Clone || c.opts.Unary != nil || len(reqs) == 0 {
		return false
	}
	cl, err := newCall(ctx, btpb.Bigtable_CheckAndMutateRow_FullMethodName)
	if err != nil {
		return false // each call reports it
	}
	if c.begin(cl) != nil {
		return false
	}
	defer c.end(cl)
	if !handle(&cl.ctx, reqs, matched, errs) {
		return false
	}
	left := cl.ended()
	for i, err := range errs {
		switch {
		case left: // over a network the client has left by now
			errs[i] = cl.contextStatus()
		case err != nil:
			errs[i] = toStatus(err)
		}
	}
	return true
}
