package facade

import (
	"context"
	"crypto/sha256"
	"errors"
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/partiql"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type executeTransactionInput struct {
	TransactStatements     []statementInput
	ClientRequestToken     *string
	ReturnConsumedCapacity *string
}

// executeTransactionOutput is the response of ExecuteTransaction. Responses has one element for
// each read, and is empty for writes.
type executeTransactionOutput struct {
	Responses        []itemResponse
	ConsumedCapacity []*capacity.Consumed `json:",omitzero"`
}

// executeTransaction runs up to 100 statements, all or none. They are either all reads, like
// TransactGetItems, or all writes and conditions, like TransactWriteItems.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ExecuteTransaction.html
func (s *Server) executeTransaction(ctx context.Context, in *executeTransactionInput) (*executeTransactionOutput, error) {
	v := s.validator("ExecuteTransaction")
	statements, err := s.transactStatements(ctx, v, in)
	if err != nil {
		return nil, err
	}
	reasons := make([]awserr.CancellationReason, len(statements))
	canceled := false
	for i, st := range statements {
		reasons[i].Code = awserr.ReasonNone
		if err := s.aimInTransaction(ctx, st); err != nil {
			reason, ok := reasonOfStatement(err)
			if !ok {
				return nil, inTransactStatement(i, v.statementError(err))
			}
			reasons[i], canceled = reason, true
		}
	}
	writes := statements[0].writes()
	for _, st := range statements {
		if st.writes() != writes {
			return nil, awserr.Validation(awserr.MsgTransactReadsAndWrites)
		}
	}
	if canceled {
		return nil, awserr.TransactionCanceled(reasons)
	}
	seen := map[string]bool{}
	for _, st := range statements {
		if err := checkOnce(seen, st.table, st.key); err != nil {
			return nil, err
		}
	}
	if writes {
		return s.transactStatementWrites(ctx, v, in, statements)
	}
	return s.transactStatementReads(ctx, v, in, statements)
}

// reasonOfStatement returns the reason with which err, the error of a statement, cancels the
// transaction: a missing table or an impossible key. ok is false for other errors, with which
// the request itself fails.
func reasonOfStatement(err error) (reason awserr.CancellationReason, ok bool) {
	e, isError := awserr.As(err)
	var wrong *partiql.Error
	switch {
	case errors.As(err, &wrong) && wrong.Problem == partiql.WrongKey:
		return awserr.CancellationReason{Code: awserr.ReasonValidation, Message: awserr.MsgKeyMismatch}, true
	case !isError:
	case e.Code == awserr.CodeResourceNotFound:
		return awserr.CancellationReason{Code: awserr.ReasonResourceNotFound, Message: e.Message}, true
	}
	return awserr.CancellationReason{}, false
}

// inTransactStatement adds the number of statement i to err if it is a ValidationException.
func inTransactStatement(i int, err error) error {
	if e, ok := awserr.As(err); ok && e.Code == awserr.CodeValidation {
		return awserr.Validation(awserr.MsgTransactStatement, i, e.Message)
	}
	return err
}

// transactStatements makes the checks of the request that need no table, and parses its
// statements.
func (s *Server) transactStatements(ctx context.Context, v *validator, in *executeTransactionInput) ([]*statement, error) {
	v.Length("ClientRequestToken", in.ClientRequestToken, 1, maxRequestTokenChars)
	v.Statements("TransactStatements", "ParameterizedStatement", in.TransactStatements == nil, len(in.TransactStatements), maxTransactItems,
		func(i int) request.Statement { return in.TransactStatements[i].shown() })
	for i := range in.TransactStatements {
		in.TransactStatements[i].constraints(v, "TransactStatements."+strconv.Itoa(i+1)+".member.")
	}
	v.ReturnOptions(in.ReturnConsumedCapacity, nil)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	for i := range in.TransactStatements {
		if err := in.TransactStatements[i].checkParameters(v); err != nil {
			return nil, err
		}
	}
	statements := make([]*statement, len(in.TransactStatements))
	for i := range in.TransactStatements {
		st, err := s.parseStatement(ctx, v, &in.TransactStatements[i])
		switch {
		case err != nil:
		case st.ExistsAlone:
			err = awserr.Validation(awserr.MsgExistsAlone)
		case st.Returning != "":
			err = awserr.Validation(awserr.MsgTransactReturning)
		case !st.writes() && st.Index != "":
			err = awserr.Validation(awserr.MsgTransactIndex)
		}
		if err != nil {
			return nil, inTransactStatement(i, err)
		}
		statements[i] = st
	}
	return statements, nil
}

// aimInTransaction finds the table and the item of a statement of a transaction.
func (s *Server) aimInTransaction(ctx context.Context, st *statement) error {
	if err := s.resolve(ctx, st, true); err != nil {
		return err
	}
	if st.Kind != partiql.Select {
		err := st.aim()
		var e *partiql.Error
		if st.Kind == partiql.Exists && (errors.As(err, &e) && e.Problem == partiql.NoKey || err == nil && st.condition == nil) {
			return awserr.Validation(awserr.MsgExistsAlone)
		}
		return err
	}
	if err := st.aimRead(awserr.MsgTransactSelectKey); err != nil {
		return err
	}
	return st.checkPaths()
}

func (s *Server) transactStatementWrites(ctx context.Context, v *validator, in *executeTransactionInput, statements []*statement) (*executeTransactionOutput, error) {
	actions := make([]checkedAction, len(statements))
	changes := make([]*store.Change, len(statements))
	for i, st := range statements {
		actions[i] = checkedAction{
			transactAction: &transactAction{TableName: &st.Table}, table: st.table,
			change: store.Change{Table: st.table, Key: st.key, Check: st.Kind == partiql.Exists, Fn: st.apply},
		}
		if st.Kind == partiql.Exists {
			actions[i].kind = actionCheck
		}
		changes[i] = &actions[i].change
	}
	var req store.RequestToken
	if in.ClientRequestToken != nil {
		req.Token, req.Hash = *in.ClientRequestToken, hashStatements(statements)
	}
	replayed, err := s.transact(ctx, v, req, changes)
	if err != nil {
		return nil, err
	}
	out := &executeTransactionOutput{Responses: []itemResponse{}}
	if capacity.Wanted(in.ReturnConsumedCapacity) {
		out.ConsumedCapacity = transactCapacity(actions, replayed, in.ReturnConsumedCapacity)
	}
	return out, nil
}

// hashStatements returns a hash of the statements and their parameters, by which a repeated
// request is recognized.
func hashStatements(statements []*statement) (hash [32]byte) {
	h := sha256.New()
	for _, st := range statements {
		text := appendText([]byte("Statement"), st.text)
		text = strconv.AppendBool(text, st.returnOld)
		text = append(strconv.AppendInt(text, int64(len(st.parameters)), 10), ':')
		for _, p := range st.parameters {
			text = attr.AppendJSON(text, p)
		}
		h.Write(text)
	}
	h.Sum(hash[:0])
	return hash
}

func (s *Server) transactStatementReads(ctx context.Context, v *validator, in *executeTransactionInput, statements []*statement) (*executeTransactionOutput, error) {
	reads := make([]*store.ItemRead, len(statements))
	for i, st := range statements {
		reads[i] = &store.ItemRead{Table: st.table, Key: st.key}
	}
	if err := s.snapshot(ctx, v, reads); err != nil {
		return nil, err
	}
	out := &executeTransactionOutput{Responses: make([]itemResponse, len(reads))}
	var tallies capacity.Tallies
	for i, r := range reads {
		st := statements[i]
		tallies.Of(st.Table, st.Table, r.Table).Table += transactWeight * capacity.ReadUnits(r.Item.Size(), true)
		if r.Item != nil {
			out.Responses[i].Item = wire.OptionalItem(st.show(r.Item))
		}
	}
	out.ConsumedCapacity = tallies.Report(in.ReturnConsumedCapacity, (*capacity.Tally).ReportReads)
	return out, nil
}
