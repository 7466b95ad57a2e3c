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

// Probe returns a context whose calls meet no faults, and are not counted as load.
func Probe(ctx context.Context) context.Context { return probe.With(ctx) }

// caller returns the faults that a call may meet. An endpoint alone uses
// the server's channel without a wire, but for probes.
func (s *rpcFaults) caller(ctx context.Context, fullMethod string) []*fault.Fault {
	if probe.Marked(ctx) {
		return nil
	}
	p, ok := peer.FromContext(ctx)
	return s.of(fullMethod, ok && p.Addr.Network() == "inproc")
}

// verdict is what the faults make of one request.
type verdict struct {
	err       error          // it fails with it
	failed    *fault.Fault   // by this fault
	lost      bool           // it is served, and its answer is not delivered
	duplicate bool           // it is served twice
	cuts      []*fault.Fault // that wait for rows
}

func (s *rpcFaults) judge(ctx context.Context, candidates []*fault.Fault, req any) verdict {
	var v verdict
	for _, f := range candidates {
		if !matches(f, req) {
			continue
		}
		if f.Spec().Effect == fault.CutRows {
			v.cuts = append(v.cuts, f) // strikes when the rows are out
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
		// There is no one request: what is decided is decided at the start.
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

// faultyStream is a server stream that faults strike. Its handler uses it from
// one goroutine.
type faultyStream struct {
	grpc.ServerStream
	faults     *rpcFaults
	candidates []*fault.Fault

	req     proto.Message // as received
	replay  bool          // the request is delivered a second time
	verdict verdict
	cut     error // the stream was cut off
	rows    int   // whole rows delivered
	inRow   bool  // a row has begun and is not whole

	// Entries of a MutateRows request that fail one by one.
	entries *entryFailures
}

type entryFailures struct {
	kept     []int64 // the entries that are served, by place; their index in the request
	failed   []int64
	answered bool // nothing is left to serve
}

// again makes ready for the second delivery.
func (c *faultyStream) again() { c.replay = true }

// silent reports whether answers go nowhere.
func (c *faultyStream) silent() bool {
	return c.verdict.lost && c.entries == nil || c.verdict.duplicate && !c.replay
}

// RecvMsg receives the request and lets the faults judge it.
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

// failEntries takes the entries that fail out of the request; m is the
// handler's own, its entries may be shared.
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

// SetHeader sets a header, once for a request that is delivered twice.
func (c *faultyStream) SetHeader(md metadata.MD) error {
	if c.silent() {
		return nil
	}
	return c.ServerStream.SetHeader(md)
}

// SendHeader sends the header, once for a request that is delivered twice.
func (c *faultyStream) SendHeader(md metadata.MD) error {
	if c.silent() {
		return nil
	}
	return c.ServerStream.SendHeader(md)
}

// SetTrailer sets a trailer, once for a request that is delivered twice.
func (c *faultyStream) SetTrailer(md metadata.MD) {
	if !c.silent() {
		c.ServerStream.SetTrailer(md)
	}
}

// SendMsg delivers a message, as far as the faults let it.
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

// cutHere returns the fault that cuts the stream after the rows that are out,
// with another about to follow.
func (c *faultyStream) cutHere() *fault.Fault {
	for i, f := range c.verdict.cuts {
		if f.Spec().Rows != c.rows {
			continue
		}
		// One decision a call: it is not asked again at the same row.
		c.verdict.cuts = append(c.verdict.cuts[:i:i], c.verdict.cuts[i+1:]...)
		if f.Strike() {
			return f
		}
		return c.cutHere()
	}
	return nil
}

// renumber gives the entries of an answer their place in the request as the
// client sent it.
func (c *faultyStream) renumber(m *btpb.MutateRowsResponse) *btpb.MutateRowsResponse {
	out := &btpb.MutateRowsResponse{RateLimitInfo: m.GetRateLimitInfo()}
	for _, e := range m.GetEntries() {
		index := e.GetIndex()
		if index >= 0 && index < int64(len(c.entries.kept)) {
			index = c.entries.kept[index]
		}
		st := e.GetStatus()
		for _, failed := range c.entries.failed { // only where they were served, and the answer is lost
			if failed == index {
				st = status.Convert(c.verdict.err).Proto()
			}
		}
		out.Entries = append(out.Entries, &btpb.MutateRowsResponse_Entry{Index: index, Status: st})
	}
	return out
}

// end returns what the stream ends with when its handler ended with err.
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
