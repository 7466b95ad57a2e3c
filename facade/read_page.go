package facade

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// readInput has the common members of Query and Scan.
type readInput struct {
	TableName                 *string
	IndexName                 *string
	Select                    *string
	AttributesToGet           []string
	Limit                     *wire.Integer
	ConsistentRead            *wire.Flag
	ConditionalOperator       *string
	ExclusiveStartKey         *wire.Item
	ReturnConsumedCapacity    *string
	ProjectionExpression      *string
	FilterExpression          *string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]wire.Value
}

// readOutput is the response of Query and Scan.
type readOutput struct {
	begun            wire.Writer // has the member Items, unless items are only counted
	Count            int
	ScannedCount     int
	LastEvaluatedKey *wire.Item
	ConsumedCapacity *capacity.Consumed
}

func (out *readOutput) WriteJSON(w *wire.Writer) {
	*w = out.begun
	w.Number("Count", out.Count)
	w.Number("ScannedCount", out.ScannedCount)
	w.Item("LastEvaluatedKey", out.LastEvaluatedKey)
	wire.Optional(w, "ConsumedCapacity", out.ConsumedCapacity)
}

// readPlan is a Query or Scan after validation.
type readPlan struct {
	v  *validator
	in *readInput
	tablespec.Source
	filter     *expr.Condition
	projection *expr.Projection
	startKey   attr.Item
	partition  attr.Item // partition key of a Query, for throttling and insights
	// fetch means that the request needs attributes that a local index does not have, so each
	// entry's item is read from the table.
	fetch bool
	// filterEntry means that the filter sees only the index entry, even if fetch is set.
	filterEntry bool
}

// constraints checks the members against the model, and returns the name of the table.
func (in *readInput) constraints(v *validator) (tableName string) {
	tableName = v.TableName(in.TableName)
	if in.IndexName != nil {
		v.Name("IndexName", *in.IndexName)
	}
	v.Enum("Select", in.Select, "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
	v.attributesToGet(in.AttributesToGet)
	v.JoiningOperator(in.ConditionalOperator)
	v.AtLeast("Limit", in.Limit.Int32(), 1)
	v.ReturnOptions(in.ReturnConsumedCapacity, nil)
	return tableName
}

// integers rejects numbers that do not fit an Integer, but only in the older layer.
func (v *validator) integers(given ...*wire.Integer) error {
	for _, n := range given {
		if n != nil && n.Err != nil && !v.Current {
			return n.Err
		}
	}
	return nil
}

// startKeyValues rejects invalid values in ExclusiveStartKey.
func (in *readInput) startKeyValues(v *validator) error {
	if in.ExclusiveStartKey == nil || in.ExclusiveStartKey.Err == nil {
		return nil
	}
	err := in.ExclusiveStartKey.Err
	text := v.AttributeErrorText(err)
	var e *attr.Error
	if errors.As(err, &e) && (e.IsNumber() || e.Problem == attr.DuplicateMember || e.Problem == attr.EmptySet && e.Type == attr.NS) {
		return v.Reject(text) // AWS does not name the member here
	}
	return v.Reject(fmt.Sprintf(awserr.MsgStartKeyInvalid, text))
}

// legacy returns the legacy members that Query and Scan share, and filter, the legacy filter of
// the operation.
func (in *readInput) legacy(filter request.LegacyMember) []request.LegacyMember {
	return []request.LegacyMember{
		{Name: "AttributesToGet", Given: in.AttributesToGet != nil},
		filter,
		{Name: "ConditionalOperator", Given: in.ConditionalOperator != nil},
	}
}

// parseExpressions parses the filter and the projection. They must be the last expressions that
// the caller parses, since parseExpressions also checks that every placeholder was used.
func (p *readPlan) parseExpressions(placeholders *expr.Placeholders) (err error) {
	if text := p.in.FilterExpression; text != nil {
		if p.filter, err = expr.ParseCondition(expr.FilterExpression, *text, placeholders); err != nil {
			return p.v.Expression(err)
		}
	}
	if text := p.in.ProjectionExpression; text != nil {
		if p.projection, err = expr.ParseProjection(*text, placeholders); err != nil {
			return p.v.Expression(err)
		}
	}
	return p.v.Expression(placeholders.CheckUsed())
}

// resolveRead sets the table and the index of p, and checks that the request can read them in
// the requested way.
func (s *Server) resolveRead(ctx context.Context, p *readPlan, tableName string) error {
	in := p.in
	t, err := s.itemTable(ctx, tableName)
	if err != nil {
		return err
	}
	p.Table = t
	if in.IndexName != nil {
		if p.Index = t.Index(*in.IndexName); p.Index == nil || p.Index.Status != tabledef.StatusActive {
			// Another process may have created or filled it.
			if t, err = s.store.TableNow(ctx, tableName); err != nil {
				return err
			}
			p.Table, p.Index = t, t.Index(*in.IndexName)
		}
		if p.Index == nil {
			return p.checkNoVectors(*in.IndexName)
		}
		if p.Index.Global && in.ConsistentRead.IsTrue() {
			return awserr.Validation(awserr.MsgConsistentOnGlobal)
		}
		if p.Index.Status == tabledef.StatusCreating {
			return awserr.Validation(awserr.MsgIndexBackfilling, *in.IndexName)
		}
	}
	return p.checkSelect()
}

func (p *readPlan) checkProjectionPaths() error {
	if p.projection == nil {
		return nil
	}
	return tablespec.CheckPathsOutsideKeys(p.Table, p.projection.Paths())
}

func (p *readPlan) checkFilterPaths() error {
	if p.filter == nil {
		return nil
	}
	return tablespec.CheckPathsOutsideKeys(p.Table, p.filter.Paths())
}

// checkSelect checks that Select fits the index and the list of requested attributes, if any.
func (p *readPlan) checkSelect() error {
	in := p.in
	list := ""
	switch {
	case in.ProjectionExpression != nil:
		list = "ProjectionExpression"
	case in.AttributesToGet != nil:
		list = "AttributesToGet"
	}
	switch {
	case is(in.Select, "ALL_PROJECTED_ATTRIBUTES") && p.Index == nil:
		return p.v.RejectSelect(awserr.MsgProjectedNoIndex)
	case is(in.Select, "SPECIFIC_ATTRIBUTES") && list == "":
		return p.v.RejectSelect(awserr.MsgSpecificWithoutList)
	case is(in.Select, "COUNT") && list != "":
		return p.v.RejectSelect(fmt.Sprintf(awserr.MsgListWithSelect, list, awserr.MsgOnlyTheCount))
	case in.Select != nil && *in.Select != "SPECIFIC_ATTRIBUTES" && list != "":
		return p.v.RejectSelect(fmt.Sprintf(awserr.MsgListWithSelect, list, *in.Select))
	}
	return nil
}

// checkProjected checks that a global index has the requested attributes. For a local index that
// lacks attributes of the request or of the filter, it sets fetch.
func (p *readPlan) checkProjected() error {
	if p.Index == nil || p.Index.Projection == tabledef.ProjectAll {
		return nil
	}
	if is(p.in.Select, "ALL_ATTRIBUTES") {
		if p.Index.Global {
			return awserr.Validation(awserr.MsgAllOnPartialGlobal, p.Index.Name)
		}
		p.fetch = true
		return nil
	}
	var paths []expr.Path
	if p.projection != nil {
		paths = p.projection.Paths()
	}
	if missing := p.Unprojected(paths); len(missing) > 0 {
		if p.Index.Global {
			return awserr.Validation(awserr.MsgNotProjected, p.Index.Name, strings.Join(missing, ", "))
		}
		p.fetch = true
	}
	if p.filter != nil && !p.Index.Global && len(p.Unprojected(p.filter.Paths())) > 0 {
		p.fetch = true
	}
	return nil
}

// checkStartKey checks the shape of ExclusiveStartKey, if given. onlyHash is as in
// tablespec.Source.CheckStartKey.
func (p *readPlan) checkStartKey(onlyHash bool) error {
	if p.in.ExclusiveStartKey == nil {
		return nil
	}
	return p.CheckStartKey(p.in.ExclusiveStartKey.Item, p.v.Operation == "Scan" && !p.v.Current, onlyHash)
}

// checkStartKeyOfTable checks the table's key in ExclusiveStartKey, if given, and sets
// startKey.
func (p *readPlan) checkStartKeyOfTable() error {
	if p.in.ExclusiveStartKey == nil {
		return nil
	}
	p.startKey = p.in.ExclusiveStartKey.Item
	return p.CheckStartKeyOfTable(p.startKey)
}

// page reads one page of items. A page ends after Limit items, or when the sum of their item sizes
// or that of attr.Sizes.OnPage reaches 1 MB, whichever is first; all of these are counted before
// the filter. OnPage hardly counts names, but must not make a page longer. The item that
// crosses 1 MB belongs to the page. If restartable is set and the page is full, the response
// has a LastEvaluatedKey.
func (s *Server) page(ctx context.Context, p *readPlan, items iter.Seq2[layout.Stored, error], restartable bool) (*readOutput, error) {
	in := p.in
	reading, err := s.throttle.Read(p.Table, p.Index, p.partition, in.ConsistentRead.IsTrue(), 1)
	s.keys.Use(p.Table, p.Index, p.partition, err)
	if err != nil {
		return nil, err
	}
	count := is(in.Select, "COUNT")
	out := &readOutput{}
	if !count {
		out.begun.Begin(s.pages.Take())
		out.begun.BeginList("Items")
	}
	if p.fetch {
		items = s.fetch(ctx, p, items)
	}
	asItIs := !count && p.filter == nil && p.projection == nil && !p.fetch
	var entryBytes, pageBytes, countedBytes int
	var tally capacity.Tally
	for entry, err := range items {
		var sizes attr.Sizes
		switch {
		case err != nil:
		case asItIs:
			out.Count++
			sizes, err = out.begun.Element(entry.AppendJSON)
		default:
			var found selection
			if found, err = selectOf(p, entry); err != nil {
				break
			}
			sizes = found.entry
			if p.fetch {
				pageBytes += found.fetchedBytes
				tally.Table += capacity.ReadUnits(found.fetchedBytes, in.ConsistentRead.IsTrue())
			}
			if found.item != nil {
				out.Count++
				if !count {
					_, err = out.begun.Element(layout.Decoded(found.item).AppendJSON)
				}
			}
		}
		if err != nil {
			return nil, err
		}
		out.ScannedCount++
		entryBytes += sizes.Item
		pageBytes += sizes.Item
		countedBytes += p.BytesOnPage(entry, sizes)
		if in.Limit != nil && out.ScannedCount >= int(in.Limit.Nearest) || max(pageBytes, countedBytes) >= maxPageBytes {
			if restartable {
				out.LastEvaluatedKey = &wire.Item{Item: p.LastKey(entry)}
			}
			break
		}
	}
	if !count {
		out.begun.EndList()
	}
	if capacity.Wanted(in.ReturnConsumedCapacity) || reading != nil {
		units := capacity.ReadUnits(entryBytes, in.ConsistentRead.IsTrue())
		if p.Index != nil {
			tally.AddIndex(p.Index.Name, units)
		} else {
			tally.Table += units
		}
		reading.Consumed(tally)
		out.ConsumedCapacity = tally.Report(*in.TableName, p.Table, in.ReturnConsumedCapacity)
	}
	return out, nil
}

// fetch yields the entries of a local index as fetched, with their items from the table.
func (s *Server) fetch(ctx context.Context, p *readPlan, entries iter.Seq2[layout.Stored, error]) iter.Seq2[layout.Stored, error] {
	limit := 0
	if p.in.Limit != nil {
		limit = int(p.in.Limit.Nearest)
	}
	key := tabledef.IndexKeyOf(p.Table.Key)
	return fetchItems(entries, limit, maxPageBytes, func(some []layout.Stored, take func(int, attr.Item) bool) error {
		keys := make([]attr.Item, len(some))
		for i, entry := range some {
			keys[i] = key.Of(entry)
		}
		return s.store.GetItems(ctx, p.Table, keys, take)
	})
}

// selection is the contribution of an entry to a page.
type selection struct {
	item         attr.Item  // nil: filtered out, or deleted in the meantime
	entry        attr.Sizes // sizes of the entry as stored
	fetchedBytes int        // size of the fetched item
}

// selectOf returns the contribution of an entry: it applies the filter and the projection of a
// read.
func selectOf(p *readPlan, stored layout.Stored) (selection, error) {
	entry, err := stored.Item()
	if err != nil {
		return selection{}, err
	}
	out := selection{entry: entry.Sizes()}
	item, filtered := entry, entry
	if p.fetch {
		item = stored.(fetched).Whole //nolint:forcetypeassert // fetch makes no others
		out.fetchedBytes = item.Size()
	}
	if !p.filterEntry {
		filtered = item
	}
	switch {
	case item == nil: // deleted in the meantime
	case p.filter != nil && !p.filter.Eval(filtered):
	case p.projection != nil:
		out.item = p.projection.Apply(item)
	case is(p.in.Select, "ALL_ATTRIBUTES"):
		out.item = item
	default:
		out.item = entry // the filter alone needed the fetched item
	}
	return out, nil
}
