package facade

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/partiql"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

type executeStatementInput struct {
	statementInput
	ConsistentRead         *wire.Flag
	NextToken              *string
	ReturnConsumedCapacity *string
	Limit                  *int32
}

type executeStatementOutput struct {
	begun            wire.Writer // has the member Items
	NextToken        *string
	LastEvaluatedKey *wire.Item
	ConsumedCapacity *capacity.Consumed
}

func (out *executeStatementOutput) WriteJSON(w *wire.Writer) {
	*w = out.begun
	wire.Optional(w, "NextToken", out.NextToken)
	w.Item("LastEvaluatedKey", out.LastEvaluatedKey)
	wire.Optional(w, "ConsumedCapacity", out.ConsumedCapacity)
}

// items writes the member Items: a list of item, or an empty list if item is nil.
func (out *executeStatementOutput) items(item attr.Item) error {
	if item != nil {
		out.begun.Reserve(item.JSONSizeHint())
	}
	out.begun.BeginList("Items")
	if item != nil {
		if _, err := out.begun.Element(layout.Decoded(item).AppendJSON); err != nil {
			return err
		}
	}
	out.begun.EndList()
	return nil
}

// executeStatement runs one PartiQL statement like the equivalent ordinary operation.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ExecuteStatement.html
func (s *Server) executeStatement(ctx context.Context, in *executeStatementInput) (*executeStatementOutput, error) {
	v := s.validator("ExecuteStatement")
	v.Enum("ReturnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionCheckFailure, "ALL_OLD", "NONE")
	v.AtLeast("Limit", in.Limit, 1)
	in.textConstraints(v, "")
	v.ReturnOptions(in.ReturnConsumedCapacity, nil)
	in.parameterConstraints(v, "")
	v.Length("NextToken", in.NextToken, 1, maxNextTokenChars)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if err := in.checkParameters(v); err != nil {
		return nil, err
	}
	st, err := s.parseStatement(ctx, v, &in.statementInput)
	switch {
	case err != nil:
		return nil, err
	case st.Kind == partiql.Exists:
		return nil, awserr.Validation(awserr.MsgExistsOutside)
	case st.writes() && in.NextToken != nil:
		return nil, awserr.Validation(awserr.MsgTokenOfWrite)
	}
	if err := s.resolve(ctx, st, in.ConsistentRead.IsTrue()); err != nil {
		return nil, err
	}
	if st.writes() {
		return s.executeWrite(ctx, v, st, in)
	}
	return s.executeSelect(ctx, v, st, in)
}

func (s *Server) executeWrite(ctx context.Context, v *validator, st *statement, in *executeStatementInput) (*executeStatementOutput, error) {
	if err := st.aim(); err != nil {
		return nil, v.statementError(err)
	}
	returned, tally, err := s.write(ctx, v, st, capacity.Wanted(in.ReturnConsumedCapacity))
	if e, ok := awserr.As(err); ok && e.Code == awserr.CodeDuplicateItem {
		return nil, awserr.New(e.Code, "%s", e.Message) // without the item
	}
	if err != nil {
		return nil, err
	}
	out := &executeStatementOutput{ConsumedCapacity: tally.Report(st.Table, st.table, in.ReturnConsumedCapacity)}
	return out, out.items(returned)
}

// executeSelect reads one item by its key like GetItem, partitions like Query, or the whole
// table like Scan.
func (s *Server) executeSelect(ctx context.Context, v *validator, st *statement, in *executeStatementInput) (*executeStatementOutput, error) {
	if in.NextToken == nil && !st.Ordered() { // a key alone needs no plan
		if out, err := s.selectOne(ctx, st, in, true); out != nil || err != nil {
			return out, err
		}
	}
	plan, err := st.Plan(st.statementKey())
	if err != nil {
		return nil, v.statementError(err)
	}
	if in.NextToken == nil {
		if out, err := s.selectOne(ctx, st, in, false); out != nil || err != nil {
			return out, err
		}
	}
	r := &selectRead{statement: st, in: in, plan: plan, page: &readPlan{
		v: v, Source: tablespec.Source{Table: st.table, Index: st.index}, filter: plan.Filter, in: &readInput{ConsistentRead: in.ConsistentRead},
	}}
	if err := st.checkPaths(); err != nil {
		return nil, err
	}
	if err := r.checkProjected(); err != nil {
		return nil, err
	}
	r.identity = partiql.Identity(st.table.ID, st.text, st.parameters, st.zeros)
	if in.NextToken != nil {
		if r.next, err = partiql.DecodeNext(*in.NextToken, r.identity, st.parameters); err != nil {
			return nil, v.statementError(err)
		}
		if !r.startsInside() {
			return nil, awserr.Validation(awserr.MsgInvalidNextToken)
		}
	}
	reading, err := s.throttle.Read(r.table, r.index, nil, in.ConsistentRead.IsTrue(), 1)
	if err != nil {
		return nil, err
	}
	out := &executeStatementOutput{}
	out.begun.Begin(s.pages.Take())
	out.begun.BeginList("Items")
	if err := s.selectPage(ctx, r, out); err != nil {
		return nil, err
	}
	reading.Consumed(r.tally)
	out.begun.EndList()
	out.ConsumedCapacity = r.tally.Report(st.Table, st.table, in.ReturnConsumedCapacity)
	return out, nil
}

// selectOne runs a SELECT that names one item by its key. It returns nil for any other SELECT.
// only has the same meaning as in read.
func (s *Server) selectOne(ctx context.Context, st *statement, in *executeStatementInput, only bool) (*executeStatementOutput, error) {
	item, shown, ok, err := s.read(ctx, st, in.ConsistentRead.IsTrue(), only)
	if err != nil || !ok {
		return nil, err
	}
	tally := capacity.Tally{Table: capacity.ReadUnits(item.Size(), in.ConsistentRead.IsTrue())}
	out := &executeStatementOutput{ConsumedCapacity: tally.Report(st.Table, st.table, in.ReturnConsumedCapacity)}
	return out, out.items(shown)
}

// selectRead is a SELECT that reads a page.
type selectRead struct {
	*statement
	in       *executeStatementInput
	plan     *partiql.Plan
	page     *readPlan
	identity [32]byte
	next     partiql.Next
	tally    capacity.Tally
	scanned  int
	bytes    int // sum of the item sizes on the page
	counted  int // sum of BytesOnPage
}

// checkProjected checks that an index has the attributes that the SELECT names. For a local
// index that lacks some of its columns, it sets page.fetch. A filter sees only the attributes
// of the index.
func (r *selectRead) checkProjected() error {
	if r.index == nil || r.index.Projection == tabledef.ProjectAll {
		return nil
	}
	columns := make([]expr.Path, len(r.Columns))
	for i, c := range r.Columns {
		columns[i] = c.Path
	}
	missing, filtered := r.page.Unprojected(columns), []string(nil)
	if len(r.plan.Partitions) > 0 {
		filtered = r.page.Unprojected(r.plan.Loose)
	}
	switch {
	case len(missing) > 0 && r.index.Global:
		return awserr.Validation(awserr.MsgNotProjected, r.index.Name, strings.Join(missing, ", "))
	case len(filtered) > 0:
		return awserr.Validation(awserr.MsgFilterNotProjected, r.index.Name, strings.Join(filtered, ", "))
	case len(missing) > 0:
		r.page.fetch, r.page.filterEntry = true, true
		all := "ALL_ATTRIBUTES"
		r.page.in.Select = &all
	}
	return nil
}

// startsInside reports whether the position in NextToken is one that the plan can reach.
func (r *selectRead) startsInside() bool {
	partitions := r.plan.Partitions
	if r.next.Partition >= max(1, len(partitions)) {
		return false
	}
	if r.next.Last == nil {
		return true
	}
	if tablespec.CheckKey(r.table.Key, r.table.Key.KeyOf(r.next.Last)) != nil {
		return false
	}
	for _, a := range r.page.Key().Attributes() {
		if r.next.Last[a.Name].Type != a.Type {
			return false
		}
	}
	return len(partitions) == 0 || attr.Equal(r.next.Last[r.statementKey().Hash.Name], partitions[r.next.Partition].Hash)
}

// selectPage reads a page of items into out. A page ends at Limit items or maxPageBytes, both
// counted before the filter. If the page is full, selectPage sets the start of the next one.
func (s *Server) selectPage(ctx context.Context, r *selectRead, out *executeStatementOutput) error {
	if len(r.plan.Partitions) == 0 {
		_, err := s.selectItems(ctx, r, s.store.Scan(ctx, r.table, r.index, 0, 1, r.next.Last), out)
		return err
	}
	for ; r.next.Partition < len(r.plan.Partitions); r.next.Partition++ {
		p := r.plan.Partitions[r.next.Partition]
		if len(r.table.Insights) > 0 {
			s.keys.Use(r.table, r.index, attr.Item{r.statementKey().Hash.Name: p.Hash}, nil)
		}
		items := s.store.Query(ctx, r.table, r.index, p, !r.plan.Backward, r.next.Last)
		full, err := s.selectItems(ctx, r, items, out)
		if full || err != nil {
			return err
		}
		r.next.Last = nil
	}
	return nil
}

// selectItems reads items, those of one partition or of a whole table, into out. It reports
// whether the page is full.
func (s *Server) selectItems(ctx context.Context, r *selectRead, items iter.Seq2[layout.Stored, error], out *executeStatementOutput) (full bool, err error) {
	if r.page.fetch {
		items = s.fetch(ctx, r.page, items)
	}
	asItIs := r.page.filter == nil && r.Columns == nil && !r.page.fetch
	bytes := 0
	for entry, err := range items {
		var sizes attr.Sizes
		switch {
		case err != nil:
		case asItIs:
			sizes, err = out.begun.Element(entry.AppendJSON)
		default:
			var found selection
			if found, err = selectOf(r.page, entry); err != nil {
				break
			}
			sizes = found.entry
			if r.page.fetch {
				r.bytes += found.fetchedBytes
				r.tally.Table += capacity.ReadUnits(found.fetchedBytes, r.in.ConsistentRead.IsTrue())
			}
			if found.item != nil {
				_, err = out.begun.Element(layout.Decoded(r.show(found.item)).AppendJSON)
			}
		}
		if err != nil {
			return false, err
		}
		r.scanned++
		bytes += sizes.Item
		r.bytes += sizes.Item
		r.counted += r.page.BytesOnPage(entry, sizes)
		if r.in.Limit != nil && r.scanned >= int(*r.in.Limit) || max(r.bytes, r.counted) >= maxPageBytes {
			full = true
			r.endPage(entry, out)
			break
		}
	}
	units := capacity.ReadUnits(bytes, r.in.ConsistentRead.IsTrue())
	if r.index != nil {
		r.tally.AddIndex(r.index.Name, units)
	} else {
		r.tally.Table += units
	}
	return full, nil
}

// endPage sets NextToken and LastEvaluatedKey for a page that ends with entry. If each
// partition has at most one item, the next page begins with the next partition; after the last
// partition, endPage sets neither.
func (r *selectRead) endPage(entry layout.Stored, out *executeStatementOutput) {
	next := partiql.Next{Partition: r.next.Partition, Last: r.page.LastKey(entry)}
	out.LastEvaluatedKey = &wire.Item{Item: next.Last}
	if len(r.plan.Partitions) > 0 && r.page.returnsOne() {
		next = partiql.Next{Partition: r.next.Partition + 1}
		if next.Partition == len(r.plan.Partitions) {
			out.LastEvaluatedKey = nil
			return
		}
	}
	token := next.Encode(r.identity)
	out.NextToken = &token
}

// statementCode converts err to DynamoDB's error, and returns it with the code that the
// response of BatchExecuteStatement has for it.
func statementCode(err error) (code string, e *awserr.Error) {
	e, ok := awserr.As(err)
	if !ok {
		if e = foreignError(err); errors.Is(err, context.Canceled) {
			return awserr.CodeInternalServerError, e
		}
	}
	switch e.Code {
	case awserr.CodeValidation:
		return awserr.ReasonValidation, e
	case awserr.CodeThrottling:
		return awserr.ReasonThrottling, e
	case awserr.CodeInternalServerError, awserr.CodeServiceUnavailable:
		return awserr.CodeInternalServerError, e
	}
	return strings.TrimSuffix(e.Code, "Exception"), e
}
