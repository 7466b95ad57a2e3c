package facade

import (
	"context"
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/partiql"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type batchExecuteStatementInput struct {
	Statements             []batchStatement
	ReturnConsumedCapacity *string
}

// batchStatement is one statement of a batch.
type batchStatement struct {
	statementInput
	ConsistentRead *wire.Flag
}

// batchExecuteStatementOutput is the response of BatchExecuteStatement: one response for each
// statement, in order.
type batchExecuteStatementOutput struct {
	Responses        []batchStatementResponse
	ConsumedCapacity []*capacity.Consumed `json:",omitzero"`
}

type batchStatementResponse struct {
	Error     *batchStatementError `json:",omitzero"`
	TableName *string              `json:",omitzero"`
	Item      *wire.Item           `json:",omitzero"`
}

type batchStatementError struct {
	Code    string
	Message string
	Item    *wire.Item `json:",omitzero"`
}

// batchSlot is a statement of a batch, with its results.
type batchSlot struct {
	*statement
	consistent bool
	err        error
	shown      attr.Item // item in the response, or nil
	tally      capacity.Tally
}

// batchExecuteStatement runs up to 25 independent statements, all reads or all writes.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
func (s *Server) batchExecuteStatement(ctx context.Context, in *batchExecuteStatementInput) (*batchExecuteStatementOutput, error) {
	v := s.validator("BatchExecuteStatement")
	v.ReturnOptions(in.ReturnConsumedCapacity, nil)
	v.Statements("Statements", "BatchStatementRequest", in.Statements == nil, len(in.Statements), maxBatchStatements, func(i int) request.Statement {
		return in.Statements[i].shown("consistentRead=" + in.Statements[i].ConsistentRead.String())
	})
	for i := range in.Statements {
		in.Statements[i].constraints(v, "Statements."+strconv.Itoa(i+1)+".member.")
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	slots := make([]batchSlot, len(in.Statements))
	var reads, writes bool
	seen := map[string]bool{}
	for i := range in.Statements {
		slot := &slots[i]
		slot.consistent = in.Statements[i].ConsistentRead.IsTrue()
		if slot.err = in.Statements[i].checkParameters(v); slot.err != nil {
			continue
		}
		if slot.statement, slot.err = s.parseStatement(ctx, v, &in.Statements[i].statementInput); slot.err != nil {
			continue
		}
		if slot.err = v.statementError(s.aimSlot(ctx, slot)); slot.err != nil {
			continue
		}
		writes, reads = writes || slot.writes(), reads || !slot.writes()
		if isSeen(seen, slot.table.ID, slot.key) {
			return nil, awserr.Validation(awserr.MsgDuplicateKeys)
		}
	}
	if reads && writes {
		return nil, awserr.Validation(awserr.MsgBatchReadsAndWrites)
	}
	var tallies capacity.Tallies
	failed := map[string]float64{}
	out := &batchExecuteStatementOutput{Responses: make([]batchStatementResponse, len(slots))}
	_ = s.store.Abreast(len(slots), func(i int) error { // each slot has its own error
		if slot := &slots[i]; slot.err == nil {
			slot.shown, slot.tally, slot.err = s.doSlot(ctx, v, slot, capacity.Wanted(in.ReturnConsumedCapacity))
		}
		return nil
	})
	for i := range slots {
		slot := &slots[i]
		out.Responses[i] = slot.response(slot.shown)
		switch e, ok := awserr.As(slot.err); {
		case slot.err == nil:
			tallies.Of(slot.Table, slot.Table, slot.table).Add(slot.tally)
		case ok && (e.Code == awserr.CodeConditionalCheckFailed || e.Code == awserr.CodeDuplicateItem):
			failed[slot.Table] += capacity.WriteUnits(slot.old, slot.Item)
		}
	}
	// ConsumedCapacity omits tables without a successful statement.
	out.ConsumedCapacity = tallies.Report(in.ReturnConsumedCapacity, (*capacity.Tally).Report)
	for _, report := range out.ConsumedCapacity {
		report.CapacityUnits += wire.Double(failed[report.TableName])
	}
	return out, nil
}

// aimSlot finds the table and the item of a statement of a batch. It rejects statements that
// do not name one item by its key.
func (s *Server) aimSlot(ctx context.Context, slot *batchSlot) error {
	if slot.Kind == partiql.Exists {
		return awserr.Validation(awserr.MsgExistsOutside)
	}
	if err := s.resolve(ctx, slot.statement, slot.consistent); err != nil {
		return err
	}
	if slot.writes() {
		return slot.aim()
	}
	if slot.index != nil {
		return awserr.Validation(awserr.MsgBatchSelectKey)
	}
	return slot.aimRead(awserr.MsgBatchSelectKey)
}

// doSlot runs a statement of a batch and returns the item for its response.
func (s *Server) doSlot(ctx context.Context, v *validator, slot *batchSlot, counted bool) (attr.Item, capacity.Tally, error) {
	if slot.writes() {
		return s.write(ctx, v, slot.statement, counted)
	}
	item, shown, _, err := s.read(ctx, slot.statement, slot.consistent, false)
	return shown, capacity.Tally{Table: capacity.ReadUnits(item.Size(), slot.consistent)}, err
}

// response returns a statement's response.
func (slot *batchSlot) response(shown attr.Item) batchStatementResponse {
	r := batchStatementResponse{Item: wire.OptionalItem(shown)}
	if slot.err == nil {
		r.TableName = &slot.Table
		return r
	}
	code, e := statementCode(slot.err)
	r.Error = &batchStatementError{Code: code, Message: e.Message, Item: wire.OptionalItem(e.Item)}
	if e.Code != awserr.CodeValidation && slot.statement != nil {
		r.TableName = &slot.Table
	}
	return r
}
