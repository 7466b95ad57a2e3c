package emu

import (
	"context"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/load"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// maxEntriesPerMessage is the largest number of entries in a response message of MutateRows.
const maxEntriesPerMessage = 10_000

// MutateRow atomically applies a list of mutations to a row, in order.
func (c *call) MutateRow(ctx context.Context, req *btpb.MutateRowRequest) (*btpb.MutateRowResponse, error) {
	err := c.mutate(ctx, req)
	load.MutateRow(c.load(ctx, req, err), req, err)
	if err != nil {
		return nil, err
	}
	return &btpb.MutateRowResponse{}, nil
}

func (c *call) mutate(ctx context.Context, req *btpb.MutateRowRequest) error {
	t, err := c.writeTarget(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return err
	}
	if ctx, err = c.admitWrite(ctx, req, t.Table, req.GetAppProfileId(), writes); err != nil {
		return err
	}
	return c.mutateRow(ctx, t, req.GetRowKey(), req.GetMutations(), req.GetIdempotency())
}

// mutateRow validates and applies the mutations of a row, only once if they have a token.
func (s *Server) mutateRow(ctx context.Context, t target, key []byte, muts []*btpb.Mutation, id *btpb.Idempotency) error {
	converted, err := s.rowMutations(nil, t, key, muts)
	if err != nil {
		return err
	}
	if id == nil {
		return refusal.Of(s.db.Mutate(ctx, t.Name, key, converted))
	}
	var period int64
	err = s.db.Update(ctx, t.Name, key, func(tx *engine.RowTx) error {
		period, err = mutateOnce(tx, key, converted, "idempotency", id)
		return err
	})
	if err == nil {
		s.forgetTokens(ctx, period)
	}
	return refusal.Of(err)
}

// rowMutations validates a row's key and mutations, and appends the converted mutations to dst.
func (s *Server) rowMutations(dst []engine.Mutation, t target, key []byte, muts []*btpb.Mutation) ([]engine.Mutation, error) {
	if err := s.limits.CheckRowKey("row_key", key); err != nil {
		return nil, err
	}
	if len(muts) == 0 {
		return nil, refusal.NoMutations()
	}
	if err := s.limits.CheckMutationCount(len(muts)); err != nil {
		return nil, err
	}
	if err := t.checkRow(key); err != nil {
		return nil, err
	}
	if err := t.checkMutations(muts); err != nil {
		return nil, err
	}
	return s.mutations(dst, t.Table, "mutations", muts)
}

// MutateRows applies each entry like MutateRow, and streams the status of each entry. It applies
// the entries of one row in order. The call fails only for errors that concern all entries.
func (c *call) MutateRows(req *btpb.MutateRowsRequest, stream btpb.Bigtable_MutateRowsServer) error {
	err := c.mutateRows(req, stream)
	load.MutateRows(c.load(stream.Context(), req, err), req, err)
	return err
}

func (c *call) mutateRows(req *btpb.MutateRowsRequest, stream btpb.Bigtable_MutateRowsServer) error {
	t, err := c.writeTarget(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return err
	}
	ctx, err := c.admitWrite(stream.Context(), req, t.Table, req.GetAppProfileId(), writes)
	if err != nil {
		return err
	}
	entries := req.GetEntries()
	if len(entries) == 0 {
		return refusal.Invalid("entries", "must specify at least one entry")
	}
	// The limit applies to the sum: "The total number of mutations across all entries must not
	// exceed 100,000" (bigtable.proto).
	total := 0
	for _, e := range entries {
		total += len(e.GetMutations())
	}
	if err := c.limits.CheckMutationCount(total); err != nil {
		return err
	}
	rate := c.rateLimit(ctx)
	for first := 0; first < len(entries); first += maxEntriesPerMessage {
		part := entries[first:min(first+maxEntriesPerMessage, len(entries))]
		errs := c.mutateEntries(ctx, t, part)
		if err := ctx.Err(); err != nil {
			return refusal.Of(err)
		}
		load.Entries(c.load(ctx, req, nil), part, errs)
		resp := &btpb.MutateRowsResponse{Entries: make([]*btpb.MutateRowsResponse_Entry, len(part)), RateLimitInfo: rate}
		slab, ok := make([]btpb.MutateRowsResponse_Entry, len(part)), &statuspb.Status{}
		for i, err := range errs {
			slab[i].Index, slab[i].Status = int64(first+i), ok
			if err != nil {
				slab[i].Status = status.Convert(err).Proto()
			}
			resp.Entries[i] = &slab[i]
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
	return nil
}

// rateLimit returns the rate advice for a client that requests it, otherwise nil. It never
// slows a client down: the rate may grow by 1.3, the cap of official clients, every 10
// milliseconds.
func (s *Server) rateLimit(ctx context.Context) *btpb.RateLimitInfo {
	features := s.clientFeatures(ctx)
	if !features.GetMutateRowsRateLimit() && !features.GetMutateRowsRateLimit2() {
		return nil
	}
	return &btpb.RateLimitInfo{Period: durationpb.New(10 * time.Millisecond), Factor: 1.3}
}

// mutateEntries applies entries and returns the error of each.
func (s *Server) mutateEntries(ctx context.Context, t target, entries []*btpb.MutateRowsRequest_Entry) []error {
	keys := make([][]byte, len(entries))
	for i, e := range entries {
		keys[i] = e.GetRowKey()
	}
	var converted []engine.Mutation
	var period int64 // of the latest token
	errs := s.db.UpdateRows(ctx, t.Name, keys, func(i int, tx *engine.RowTx) (err error) {
		if converted, err = s.rowMutations(converted[:0], t, keys[i], entries[i].GetMutations()); err != nil {
			return err
		}
		id := entries[i].GetIdempotency()
		if id == nil {
			return tx.Mutate(converted)
		}
		p, err := mutateOnce(tx, keys[i], converted, "idempotency", id)
		period = max(period, p)
		return err
	})
	for i, err := range errs {
		errs[i] = refusal.Of(err)
	}
	if period > 0 {
		s.forgetTokens(ctx, period)
	}
	return errs
}
