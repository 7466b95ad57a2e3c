package emu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/load"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/engine"
)

// CheckAndMutateRow applies one of two lists of mutations, depending on whether a filter yields any
// cell of the row or, without a filter, on whether the row exists. The test and the mutations are
// one atomic step. Both lists are always validated; in an authorized view, both may only change
// cells of the view.
func (c *call) CheckAndMutateRow(ctx context.Context, req *btpb.CheckAndMutateRowRequest) (*btpb.CheckAndMutateRowResponse, error) {
	resp, err := c.checkAndMutateRow(ctx, req)
	load.CheckAndMutateRow(c.load(ctx, req, err), req, resp, err)
	return resp, err
}

func (c *call) checkAndMutateRow(ctx context.Context, req *btpb.CheckAndMutateRowRequest) (*btpb.CheckAndMutateRowResponse, error) {
	var m checkedMutation
	ctx, err := c.prepareCheck(ctx, req, &m)
	if err != nil {
		return nil, err
	}
	err = c.db.Update(ctx, m.t.Name, req.GetRowKey(), func(tx *engine.RowTx) error { return m.run(ctx, tx) })
	if err != nil {
		return nil, refusal.Of(err)
	}
	return &btpb.CheckAndMutateRowResponse{PredicateMatched: m.matched}, nil
}

// checkedMutation is a valid CheckAndMutateRow.
type checkedMutation struct {
	t               target
	onTrue, onFalse []engine.Mutation
	program         *filter.Program
	canMatch        bool // the filter can pass cells of the row
	matched         bool // result of run
}

// prepareCheck admits and validates a request. The context is that of the writes.
func (c *call) prepareCheck(ctx context.Context, req *btpb.CheckAndMutateRowRequest, m *checkedMutation) (context.Context, error) {
	t, err := c.writeTarget(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return ctx, err
	}
	if ctx, err = c.admitWrite(ctx, req, t.Table, req.GetAppProfileId(), transacts); err != nil {
		return ctx, err
	}
	key := req.GetRowKey()
	if err := c.limits.CheckRowKey("row_key", key); err != nil {
		return ctx, err
	}
	if len(req.GetTrueMutations()) == 0 && len(req.GetFalseMutations()) == 0 {
		return ctx, refusal.NoMutations()
	}
	if err := t.checkRow(key); err != nil {
		return ctx, err
	}
	if err := t.checkMutations(req.GetTrueMutations()); err != nil {
		return ctx, err
	}
	if err := t.checkMutations(req.GetFalseMutations()); err != nil {
		return ctx, err
	}
	m.t = t
	if m.onTrue, err = c.branch(t.Table, "true_mutations", req.GetTrueMutations()); err != nil {
		return ctx, err
	}
	if m.onFalse, err = c.branch(t.Table, "false_mutations", req.GetFalseMutations()); err != nil {
		return ctx, err
	}
	if m.program, err = c.compileFilter("predicate_filter", t.Table, req.GetPredicateFilter()); err != nil {
		return ctx, err
	}
	rows := m.program.Rows()
	m.canMatch = rows.All() || len(rows.Intersect(filter.OneRow(key)).Spans) > 0
	return ctx, nil
}

// run tests the row of tx and applies the chosen mutations.
func (m *checkedMutation) run(ctx context.Context, tx *engine.RowTx) error {
	m.matched = false
	if m.canMatch {
		from, qualifier := m.program.First()
		scan := replica.Cells(tx, from, qualifier)
		if cells, _, ok := m.t.cells(scan); ok {
			_, err := m.program.Run(ctx, tx.Key(), cells, func(*filter.Cell) error {
				m.matched = true
				return errStop
			})
			if err != nil && !errors.Is(err, errStop) {
				return err
			}
		}
		if err := scan.Close(); err != nil { // before Mutate, which reuses its resources
			return err
		}
	}
	chosen := m.onFalse
	if m.matched {
		chosen = m.onTrue
	}
	if len(chosen) == 0 {
		return nil
	}
	return tx.Mutate(chosen)
}

// checkAndMutateRows answers calls of CheckAndMutateRow on one table from this process, in groups
// of the engine, which lock, read and commit rows together. Each call is atomic, and independent of
// the others. It returns false, and has made no call, if the calls must be made one by one.
func (s *Server) checkAndMutateRows(ctx context.Context, reqs []*btpb.CheckAndMutateRowRequest, matched []bool, errs []error) (together bool) {
	if s.observe != nil || s.faults != nil && s.faults.Armed() {
		return false
	}
	c := s.begin(ctx, checkInProcess)
	c.req = reqs[0]
	var failed error
	defer func() {
		c.end(time.Time{}, false, failed)
		for i := range errs {
			errs[i] = cmp.Or(failed, errs[i])
		}
	}()
	defer recoverPanic(s.logger, checkInProcess.name, &failed)
	together = true // after a panic, too
	ms := make([]checkedMutation, len(reqs))
	order := make([]int, 0, len(reqs))
	for i, req := range reqs {
		if req.GetTableName() != reqs[0].GetTableName() || req.GetAuthorizedViewName() != "" {
			return false
		}
		writes, err := c.prepareCheck(ctx, req, &ms[i])
		if writes != ctx {
			return false // the changes are attributed to a cluster
		}
		if errs[i] = err; err == nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return bytes.Compare(reqs[i].GetRowKey(), reqs[j].GetRowKey()) })
	rows := make([][]byte, len(order))
	for n, i := range order {
		rows[n] = reqs[i].GetRowKey()
	}
	if len(rows) > 0 {
		done := s.db.UpdateRows(ctx, reqs[0].GetTableName(), rows, func(n int, tx *engine.RowTx) error { return ms[order[n]].run(ctx, tx) })
		for n, i := range order {
			matched[i], errs[i] = ms[i].matched, refusal.Of(done[n])
		}
	}
	for i, req := range reqs {
		if t := c.load(ctx, req, errs[i]); t != nil {
			load.CheckAndMutateRow(t, req, &btpb.CheckAndMutateRowResponse{PredicateMatched: matched[i]}, errs[i])
		}
	}
	return true
}

// checkInProcess is CheckAndMutateRow for callers in this process.
var checkInProcess = &method{name: btpb.Bigtable_CheckAndMutateRow_FullMethodName, served: true}

// errStop ends the evaluation of a filter early.
var errStop = errors.New("stop")

// branch validates and converts one list of mutations, which may be empty.
func (s *Server) branch(t *engine.Table, field string, muts []*btpb.Mutation) ([]engine.Mutation, error) {
	if err := s.limits.CheckMutationCount(len(muts)); err != nil {
		return nil, err
	}
	return s.mutations(nil, t, field, muts)
}
