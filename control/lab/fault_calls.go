package lab

import (
	"context"
	"errors"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/internal/probe"
)

// Probe returns a context for calls that faults do not affect and that do not count as load.
func Probe(ctx context.Context) context.Context { return probe.With(ctx) }

// caller returns the faults that a call may meet. Except for probes, only an endpoint uses the
// server's in-process channel.
func (s *rpcFaults) caller(ctx context.Context, fullMethod string) []*fault.Fault {
	if probe.Marked(ctx) {
		return nil
	}
	p, ok := peer.FromContext(ctx)
	return s.of(fullMethod, ok && p.Addr.Network() == "inproc")
}

// verdict is the effect of the faults on one request.
type verdict struct {
	err       error          // the request fails with err
	failed    *fault.Fault   // the fault that fails it
	lost      bool           // it is served, but its answer is lost
	duplicate bool           // it is served twice
	cuts      []*fault.Fault // faults that take effect after some rows
}

// judge applies the candidates that match a request, in order: it counts them, waits for delays, and
// returns the effect on the request.
func (s *rpcFaults) judge(ctx context.Context, candidates []*fault.Fault, req any) verdict {
	var v verdict
	for _, f := range candidates {
		if !matches(f, req) {
			continue
		}
		if f.Spec().Effect == fault.CutRows {
			v.cuts = append(v.cuts, f) // takes effect after the rows
			continue
		}
		if !f.Strike() {
			continue
		}
		switch f.Spec().Effect {
		case fault.FailCall:
			v.err, v.failed, v.lost = f.Spec().Err, f, f.Spec().Applied
			return v
		case fault.DelayCall:
			if err := s.wait(ctx, f.Spec().Delay); err != nil {
				v.err = err
				return v
			}
		case fault.DuplicateCall:
			v.duplicate = true
		case fault.CutRows, fault.LeaveEntries, fault.ReadOld:
		}
	}
	return v
}

// Armed implements emu.Faults.
func (s *rpcFaults) Armed() bool { return len(s.All()) > 0 }

// Unary implements emu.Faults.
func (s *rpcFaults) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	candidates := s.caller(ctx, info.FullMethod)
	if len(candidates) == 0 {
		return handler(ctx, req)
	}
	v := s.judge(ctx, candidates, req)
	if v.err != nil && !v.lost {
		return nil, v.err
	}
	if v.duplicate {
		if _, err := handler(ctx, req); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	resp, err := handler(ctx, req)
	if v.lost {
		return nil, v.err
	}
	return resp, err
}

// Stream implements emu.Faults.
func (s *rpcFaults) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	candidates := s.caller(ss.Context(), info.FullMethod)
	if len(candidates) == 0 {
		return handler(srv, ss)
	}
	if info.IsClientStream {
		// A client stream has several requests, so the decision is made at the start.
		if v := s.judge(ss.Context(), candidates, nil); v.err != nil && !v.lost {
			return v.err
		}
		return handler(srv, ss)
	}
	c := &faultyStream{ServerStream: ss, faults: s, candidates: candidates}
	err := handler(srv, c)
	if c.verdict.duplicate && ss.Context().Err() == nil {
		c.again()
		err = handler(srv, c)
	}
	return c.end(err)
}

// faultyStream is a server stream with faults. Its handler uses it from one goroutine.
type faultyStream struct {
	grpc.ServerStream
	faults     *rpcFaults
	candidates []*fault.Fault

	req     proto.Message // as received
	replay  bool          // the request is delivered a second time
	verdict verdict
	cut     error // the error that ended the stream early
	rows    int   // number of delivered complete rows
	inRow   bool  // an incomplete row was delivered

	// Entries of a MutateRows request that fail individually.
	entries *entryFailures
}

type entryFailures struct {
	kept     []int64 // for each served entry, its index in the request
	failed   []int64
	answered bool // nothing remains to be served
}

// again prepares the second delivery.
func (c *faultyStream) again() { c.replay = true }

// silent reports whether the answer of this delivery is discarded: a fault loses it, or the request is
// delivered again.
func (c *faultyStream) silent() bool {
	return c.verdict.lost && c.entries == nil || c.verdict.duplicate && !c.replay
}

// RecvMsg receives the request and applies the faults to it.
func (c *faultyStream) RecvMsg(m any) error {
	if c.replay {
		proto.Merge(m.(proto.Message), c.req)
		return nil
	}
	if err := c.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	c.verdict = c.faults.judge(c.Context(), c.candidates, m)
	if bulk, ok := m.(*btpb.MutateRowsRequest); ok && c.verdict.failed != nil && c.verdict.failed.Spec().Row != nil {
		c.failEntries(bulk)
		if c.entries.answered {
			return c.verdict.err
		}
	} else if c.verdict.err != nil && !c.verdict.lost {
		return c.verdict.err
	}
	if c.verdict.duplicate {
		c.req = proto.Clone(m.(proto.Message))
	}
	return nil
}

// failEntries removes the failing entries from the request. m belongs to the handler, but may
// share its entries.
func (c *faultyStream) failEntries(m *btpb.MutateRowsRequest) {
	c.entries = &entryFailures{}
	var serve []*btpb.MutateRowsRequest_Entry
	for i, e := range m.GetEntries() {
		fails := holds(c.verdict.failed, e.GetRowKey())
		if fails {
			c.entries.failed = append(c.entries.failed, int64(i))
		}
		if !fails || c.verdict.lost {
			c.entries.kept = append(c.entries.kept, int64(i))
			serve = append(serve, e)
		}
	}
	m.Entries = serve
	c.entries.answered = len(serve) == 0
}

// SetHeader sets a header, unless the answer of this delivery is discarded.
func (c *faultyStream) SetHeader(md metadata.MD) error {
	if c.silent() {
		return nil
	}
	return c.ServerStream.SetHeader(md)
}

// SendHeader sends the header, unless the answer of this delivery is discarded.
func (c *faultyStream) SendHeader(md metadata.MD) error {
	if c.silent() {
		return nil
	}
	return c.ServerStream.SendHeader(md)
}

// SetTrailer sets a trailer, unless the answer of this delivery is discarded.
func (c *faultyStream) SetTrailer(md metadata.MD) {
	if !c.silent() {
		c.ServerStream.SetTrailer(md)
	}
}

// SendMsg sends a message unless a fault withholds it.
func (c *faultyStream) SendMsg(m any) error {
	switch {
	case c.cut != nil:
		return c.cut
	case c.silent():
		return nil
	}
	switch m := m.(type) {
	case *btpb.ReadRowsResponse:
		return c.sendRows(m)
	case *btpb.MutateRowsResponse:
		if c.entries != nil {
			return c.ServerStream.SendMsg(c.renumber(m))
		}
	}
	return c.ServerStream.SendMsg(m)
}

// sendRows delivers the rows up to the first cut.
func (c *faultyStream) sendRows(m *btpb.ReadRowsResponse) error {
	for i, chunk := range m.GetChunks() {
		if !c.inRow { // another row begins
			if f := c.cutHere(); f != nil {
				c.cut = f.Spec().Err
				if i == 0 {
					return c.cut
				}
				return errors.Join(c.ServerStream.SendMsg(&btpb.ReadRowsResponse{Chunks: m.GetChunks()[:i]}), c.cut)
			}
		}
		c.inRow = !chunk.GetCommitRow() && !chunk.GetResetRow()
		if chunk.GetCommitRow() {
			c.rows++
		}
	}
	return c.ServerStream.SendMsg(m)
}

// cutHere returns the fault that ends the stream after the delivered rows, when another row
// follows. It removes the faults for this number of rows, so that each decides once.
func (c *faultyStream) cutHere() *fault.Fault {
	for i, f := range c.verdict.cuts {
		if f.Spec().Rows != c.rows {
			continue
		}
		// There is one decision per call: the fault is not asked again at the same row.
		c.verdict.cuts = append(c.verdict.cuts[:i:i], c.verdict.cuts[i+1:]...)
		if f.Strike() {
			return f
		}
		return c.cutHere()
	}
	return nil
}

// renumber restores the entries' indexes of the client's request in an answer.
func (c *faultyStream) renumber(m *btpb.MutateRowsResponse) *btpb.MutateRowsResponse {
	out := &btpb.MutateRowsResponse{RateLimitInfo: m.GetRateLimitInfo()}
	for _, e := range m.GetEntries() {
		index := e.GetIndex()
		if index >= 0 && index < int64(len(c.entries.kept)) {
			index = c.entries.kept[index]
		}
		st := e.GetStatus()
		for _, failed := range c.entries.failed { // only if they were served, and the answer is lost
			if failed == index {
				st = status.Convert(c.verdict.err).Proto()
			}
		}
		out.Entries = append(out.Entries, &btpb.MutateRowsResponse_Entry{Index: index, Status: st})
	}
	return out
}

// end returns the error of the stream after its handler ended with err. It first sends the statuses of
// entries that a fault failed.
func (c *faultyStream) end(err error) error {
	switch {
	case c.cut != nil:
		return c.cut
	case c.entries != nil:
		if (err != nil && !c.entries.answered) || c.verdict.lost {
			return err
		}
		resp := &btpb.MutateRowsResponse{}
		for _, index := range c.entries.failed {
			resp.Entries = append(resp.Entries, &btpb.MutateRowsResponse_Entry{Index: index, Status: status.Convert(c.verdict.err).Proto()})
		}
		return c.ServerStream.SendMsg(resp)
	case c.verdict.lost:
		return c.verdict.err
	}
	return err
}
