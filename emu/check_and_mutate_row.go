package emu

import (
	"context"
	"errors"

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
	t, err := c.writeTarget(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return nil, err
	}
	if ctx, err = c.admitWrite(ctx, req, t.Table, req.GetAppProfileId(), transacts); err != nil {
		return nil, err
	}
	key := req.GetRowKey()
	if err := c.limits.CheckRowKey("row_key", key); err != nil {
		return nil, err
	}
	if len(req.GetTrueMutations()) == 0 && len(req.GetFalseMutations()) == 0 {
		return nil, refusal.NoMutations()
	}
	if err := t.checkRow(key); err != nil {
		return nil, err
	}
	if err := t.checkMutations(req.GetTrueMutations()); err != nil {
		return nil, err
	}
	if err := t.checkMutations(req.GetFalseMutations()); err != nil {
		return nil, err
	}
	onTrue, err := c.branch(t.Table, "true_mutations", req.GetTrueMutations())
	if err != nil {
		return nil, err
	}
	onFalse, err := c.branch(t.Table, "false_mutations", req.GetFalseMutations())
	if err != nil {
		return nil, err
	}
	program, err := c.compileFilter("predicate_filter", t.Table, req.GetPredicateFilter())
	if err != nil {
		return nil, err
	}
	rows := program.Rows()
	canMatch := rows.All() || len(rows.Intersect(filter.OneRow(key)).Spans) > 0
	from, qualifier := program.First()
	var matched bool
	err = c.db.Update(ctx, t.Name, key, func(tx *engine.RowTx) error {
		matched = false
		if canMatch {
			scan := replica.Cells(tx, from, qualifier)
			if cells, _, ok := t.cells(scan); ok {
				_, err := program.Run(ctx, key, cells, func(*filter.Cell) error {
					matched = true
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
		chosen := onFalse
		if matched {
			chosen = onTrue
		}
		if len(chosen) == 0 {
			return nil
		}
		return tx.Mutate(chosen)
	})
	if err != nil {
		return nil, refusal.Of(err)
	}
	return &btpb.CheckAndMutateRowResponse{PredicateMatched: matched}, nil
}

// errStop ends the evaluation of a filter early.
var errStop = errors.New("stop")

// branch validates and converts one list of mutations, which may be empty.
func (s *Server) branch(t *engine.Table, field string, muts []*btpb.Mutation) ([]engine.Mutation, error) {
	if err := s.limits.CheckMutationCount(len(muts)); err != nil {
		return nil, err
	}
	return s.mutations(nil, t, field, muts)
}
