package emu

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/engine"
)

// MutateRow applies mutations to a row, in order, all or none.
func (s dataService) MutateRow(ctx context.Context, req *btpb.MutateRowRequest) (*btpb.MutateRowResponse, error) {
	table, err := s.writeTarget(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return nil, err
	}
	if err := s.checkProfile(table.Name, req.GetAppProfileId(), writes); err != nil {
		return nil, err
	}
	if err := s.mutateRow(ctx, table, req.GetRowKey(), req.GetMutations(), req.GetIdempotency()); err != nil {
		return nil, err
	}
	return &btpb.MutateRowResponse{}, nil
}

// mutateRow validates and applies the mutations of a row, once if they carry a
// token.
func (s *Server) mutateRow(ctx context.Context, table *engine.Table, key []byte, muts []*btpb.Mutation, id *btpb.Idempotency) error {
	if err := s.checkRowKey("row_key", key); err != nil {
		return err
	}
	if err := s.checkMutationCount("mutations", len(muts)); err != nil {
		return err
	}
	converted, err := s.mutations(table, "mutations", muts)
	if err != nil {
		return err
	}
	if id != nil {
		return toStatus(s.mutateOnce(ctx, table.Name, key, converted, "idempotency", id))
	}
	return toStatus(s.db.Mutate(ctx, table.Name, key, converted))
}

// MutateRows applies each entry as MutateRow does, entries of one row in the
// order given, and streams the status of each. Only what concerns all entries fails the call.
func (s dataService) MutateRows(req *btpb.MutateRowsRequest, stream btpb.Bigtable_MutateRowsServer) error {
	table, err := s.writeTarget(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return err
	}
	if err := s.checkProfile(table.Name, req.GetAppProfileId(), writes); err != nil {
		return err
	}
	entries := req.GetEntries()
	if len(entries) == 0 {
		return statusInvalid("entries", "must specify at least one entry")
	}
	// The limit holds for the sum: "The total number of mutations across all
	// entries must not exceed 100,000" (bigtable.proto).
	total := 0
	for _, e := range entries {
		total += len(e.GetMutations())
	}
	if err := s.limit(total, maxMutations, "entries", "mutations"); err != nil {
		return err
	}
	ctx := stream.Context()
	rate := s.rateLimit(ctx)
	for first := 0; first < len(entries); first += maxEntriesPerMessage {
		part := entries[first:min(first+maxEntriesPerMessage, len(entries))]
		errs := s.mutateEntries(ctx, table, part)
		if err := ctx.Err(); err != nil {
			return toStatus(err)
		}
		resp := &btpb.MutateRowsResponse{Entries: make([]*btpb.MutateRowsResponse_Entry, len(part)), RateLimitInfo: rate}
		for i, err := range errs {
			st := &statuspb.Status{}
			if err != nil {
				st = status.Convert(err).Proto()
			}
			resp.Entries[i] = &btpb.MutateRowsResponse_Entry{Index: int64(first + i), Status: st}
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
	return nil
}

// rateLimit is what a client that limits its rate of bulk writes is told: there
// is no load here to hold it back, so that it may grow by the factor that
// official clients cap at 1.3, and again after a moment. A client that does not
// ask is told nothing.
func (s *Server) rateLimit(ctx context.Context) *btpb.RateLimitInfo {
	features := s.clientFeatures(ctx)
	if !features.GetMutateRowsRateLimit() && !features.GetMutateRowsRateLimit2() {
		return nil
	}
	return &btpb.RateLimitInfo{Period: durationpb.New(10 * time.Millisecond), Factor: 1.3}
}

// mutateEntries applies entries and returns the outcome of each. Entries of
// the same row keep their order; others are applied side by side, so that a
// store on disk syncs many with one write.
func (s *Server) mutateEntries(ctx context.Context, table *engine.Table, entries []*btpb.MutateRowsRequest_Entry) []error {
	errs := make([]error, len(entries))
	apply := func(i int) {
		// A panic in a goroutine of ours would end the process.
		defer s.recoverPanic("google.bigtable.v2.Bigtable/MutateRows", &errs[i])
		errs[i] = s.mutateRow(ctx, table, entries[i].GetRowKey(), entries[i].GetMutations(), entries[i].GetIdempotency())
	}
	workers := uint64(min(len(entries)/minEntriesPerWorker, maxEntryWorkers))
	if workers < 2 {
		for i := range entries {
			apply(i)
		}
		return errs
	}
	var wg sync.WaitGroup
	seed := maphash.MakeSeed()
	for w := range workers {
		wg.Go(func() {
			for i, e := range entries {
				if maphash.Bytes(seed, e.GetRowKey())%workers == w {
					apply(i)
				}
			}
		})
	}
	wg.Wait()
	return errs
}
