package facade

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/keyrules"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tableschema"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// readInput are the members that Query and Scan share.
type readInput struct {
	TableName                 *string
	IndexName                 *string
	Select                    *string
	AttributesToGet           []string
	Limit                     *int32
	ConsistentRead            *wire.Flag
	ConditionalOperator       *string
	ExclusiveStartKey         *wire.Item
	ReturnConsumedCapacity    *string
	ProjectionExpression      *string
	FilterExpression          *string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]wire.Value
}

// readOutput is the answer of Query and Scan.
type readOutput struct {
	begun            wire.Writer // with the items, unless they are only counted
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
	v          *validator
	in         *readInput
	table      *tabledef.Table
	index      *tabledef.Index // nil: the table itself
	filter     *expr.Condition
	projection *expr.Projection
	startKey   attr.Item
	// fetch says that the request needs attributes that a local index does
	// not hold: each entry's item is read from the table.
	fetch bool
}

// constraints checks the members against the model.
func (in *readInput) constraints(v *validator) (tableName string) {
	tableName = v.tableName(in.TableName)
	if in.IndexName != nil {
		v.name("IndexName", *in.IndexName)
	}
	v.enum("Select", in.Select, "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
	v.attributesToGet(in.AttributesToGet)
	v.joiningOperator(in.ConditionalOperator)
	v.atLeast("Limit", in.Limit, 1)
	v.returnOptions(in.ReturnConsumedCapacity, nil)
	return tableName
}

// startKeyValues checks the values of ExclusiveStartKey.
func (in *readInput) startKeyValues(v *validator) error {
	if in.ExclusiveStartKey == nil || in.ExclusiveStartKey.Err == nil {
		return nil
	}
	err := in.ExclusiveStartKey.Err
	text := v.attributeErrorText(err)
	var e *attr.Error
	if errors.As(err, &e) && (e.IsNumber() || e.Problem == attr.DuplicateMember || e.Problem == attr.EmptySet && e.Type == attr.NS) {
		return v.reject(text) // AWS does not say where
	}
	return v.reject(fmt.Sprintf(msgStartKeyInvalid, text))
}

// legacy are the members of both operations that came before expressions, and
// the filter of that kind.
func (in *readInput) legacy(filter legacyMember) []legacyMember {
	return []legacyMember{
		{"AttributesToGet", in.AttributesToGet != nil},
		filter,
		{"ConditionalOperator", in.ConditionalOperator != nil},
	}
}

// parseExpressions parses filter and projection, the last expressions of a
// Query or Scan.
func (p *readPlan) parseExpressions(placeholders *expr.Placeholders) (err error) {
	if text := p.in.FilterExpression; text != nil {
		if p.filter, err = expr.ParseCondition(expr.FilterExpression, *text, placeholders); err != nil {
			return p.v.expression(err)
		}
	}
	if text := p.in.ProjectionExpression; text != nil {
		if p.projection, err = expr.ParseProjection(*text, placeholders); err != nil {
			return p.v.expression(err)
		}
	}
	return p.v.expression(placeholders.CheckUsed())
}

// resolveRead finds the table and the index and checks what decides how they
// are read.
func (s *Server) resolveRead(ctx context.Context, p *readPlan, tableName string) error {
	in := p.in
	t, err := s.itemTable(ctx, tableName)
	if err != nil {
		return err
	}
	p.table = t
	if in.IndexName != nil {
		if p.index = t.Index(*in.IndexName); p.index == nil || p.index.Status != tabledef.StatusActive {
			// Another process may have made it, or filled it.
			if t, err = s.store.TableNow(ctx, tableName); err != nil {
				return err
			}
			p.table, p.index = t, t.Index(*in.IndexName)
		}
		if p.index == nil {
			return validationError(fmt.Sprintf(msgIndexUnknown, *in.IndexName))
		}
		if p.index.Global && in.ConsistentRead.IsTrue() {
			return validationError(msgConsistentOnGlobal)
		}
		if p.index.Status == tabledef.StatusCreating {
			return validationError(fmt.Sprintf(msgIndexBackfilling, *in.IndexName))
		}
	}
	return p.checkSelect()
}

func (p *readPlan) checkProjectionPaths() error {
	if p.projection == nil {
		return nil
	}
	return keyrules.CheckPathsOutsideKeys(p.table, p.projection.Paths())
}

func (p *readPlan) checkFilterPaths() error {
	if p.filter == nil {
		return nil
	}
	return keyrules.CheckPathsOutsideKeys(p.table, p.filter.Paths())
}

// key is the key schema that the read goes by.
func (p *readPlan) key() tabledef.IndexKey {
	if p.index != nil {
		return p.index.Key
	}
	return tabledef.IndexKeyOf(p.table.Key)
}

// checkSelect checks that Select, the index and the list of attributes go
// together.
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
	case is(in.Select, "ALL_PROJECTED_ATTRIBUTES") && p.index == nil:
		return p.v.rejectSelect(msgProjectedNoIndex)
	case is(in.Select, "SPECIFIC_ATTRIBUTES") && list == "":
		return p.v.rejectSelect(msgSpecificWithoutList)
	case is(in.Select, "COUNT") && list != "" && p.v.current:
		return p.v.rejectSelect(fmt.Sprintf(msgListWithSelect, list, msgOnlyTheCount))
	case in.Select != nil && *in.Select != "SPECIFIC_ATTRIBUTES" && list != "":
		return p.v.rejectSelect(fmt.Sprintf(msgListWithSelect, list, *in.Select))
	}
	return nil
}

// checkProjected checks that an index has what the request wants of it, and
// decides whether a local one must fetch.
func (p *readPlan) checkProjected() error {
	if p.index == nil || p.index.Projection == tabledef.ProjectAll {
		return nil
	}
	if is(p.in.Select, "ALL_ATTRIBUTES") {
		if p.index.Global {
			return validationError(fmt.Sprintf(msgAllOnPartialGlobal, p.index.Name))
		}
		p.fetch = true
		return nil
	}
	var paths []expr.Path
	if p.projection != nil {
		paths = p.projection.Paths()
	}
	if missing := p.unprojected(paths); len(missing) > 0 {
		if p.index.Global {
			return validationError(fmt.Sprintf(msgNotProjected, p.index.Name, strings.Join(missing, ", ")))
		}
		p.fetch = true
	}
	if p.filter != nil && !p.index.Global && len(p.unprojected(p.filter.Paths())) > 0 {
		p.fetch = true
	}
	return nil
}

// unprojected returns the attributes of paths that the index does not hold.
func (p *readPlan) unprojected(paths []expr.Path) []string {
	var missing []string
	for _, path := range paths {
		if !capacity.Projects(p.table, p.index, path.Attribute()) {
			missing = append(missing, path.Attribute())
		}
	}
	return missing
}

// checkStartKey checks the shape of ExclusiveStartKey: it has the key of the
// table and, for an index, the index's key attributes. The types are those of
// the key that the read goes by, unless that is a scan of the table. onlyHash leaves
// the sort key out: what the request asks of the partition key is wrong, which is
// told before it.
func (p *readPlan) checkStartKey(onlyHash bool) error {
	if p.in.ExclusiveStartKey == nil {
		return nil
	}
	given := p.in.ExclusiveStartKey.Item
	names := map[string]bool{}
	for _, a := range p.table.Key.Attrs() {
		names[a.Name] = true
	}
	for _, a := range p.key().Attributes() {
		names[a.Name] = true
	}
	scansTable := p.index == nil && p.v.operation == "Scan"
	shape := msgStartKeyShape
	if scansTable {
		shape = fmt.Sprintf(msgStartKeyInvalid, msgKeyMismatch)
	}
	if len(given) != len(names) {
		return validationError(shape)
	}
	if scansTable {
		return nil
	}
	attributes := p.key().Attributes()
	if onlyHash {
		attributes = p.key().Hash
	}
	for _, a := range attributes {
		switch value, ok := given[a.Name]; {
		case !ok:
			return validationError(shape)
		case value.Type != a.Type:
			return validationError(msgKeyMismatch)
		}
	}
	return nil
}

// checkStartKeyOfTable checks what ExclusiveStartKey has of the table's key, and
// takes it.
func (p *readPlan) checkStartKeyOfTable() error {
	if p.in.ExclusiveStartKey == nil {
		return nil
	}
	given := p.in.ExclusiveStartKey.Item
	if err := keyrules.CheckKey(p.table.Key, p.table.Key.KeyOf(given)); err != nil {
		if e, ok := asError(err); ok {
			return validationError(fmt.Sprintf(msgStartKeyInvalid, e.Message))
		}
		return err
	}
	p.startKey = given
	return nil
}

// lastKey is the LastEvaluatedKey after an item.
func (p *readPlan) lastKey(item layout.Stored) attr.Item {
	key := tabledef.IndexKeyOf(p.table.Key).Of(item)
	if p.index != nil {
		maps.Copy(key, p.index.Key.Of(item))
	}
	return key
}

// bytesOnPage returns what an entry of so many bytes counts for of a page. Of an
// index it is its own sort key that counts (belief).
func (p *readPlan) bytesOnPage(entry layout.Stored, sizes attr.Sizes) int {
	if p.index == nil {
		return sizes.OnPage(entry.Get(p.table.Key.Range.Name))
	}
	sortKey := make([]attr.Value, 0, tableschema.MaxKeyAttributesOfKind)
	for _, a := range p.index.Key.Range {
		sortKey = append(sortKey, entry.Get(a.Name))
	}
	return sizes.OnPage(sortKey...)
}

// page reads one page of items: until the limit of items or of bytes, both
// counted before the filter. Bytes are those of the items, and what is counted for
// each beside them: whichever is 1 MB first, so that names, which are hardly counted
// there, do not make a page any longer. The item that crosses 1 MB still belongs to
// the page. restartable says that a next page can be asked for.
func (s *Server) page(ctx context.Context, p *readPlan, items iter.Seq2[layout.Stored, error], restartable bool) (*readOutput, error) {
	in := p.in
	count := is(in.Select, "COUNT")
	out := &readOutput{}
	if !count {
		out.begun.Begin(s.pages.Take())
		out.begun.BeginList("Items")
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
			if found, err = s.selectOf(ctx, p, entry); err != nil {
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
		countedBytes += p.bytesOnPage(entry, sizes)
		if in.Limit != nil && out.ScannedCount >= int(*in.Limit) || max(pageBytes, countedBytes) >= maxPageBytes {
			if restartable {
				out.LastEvaluatedKey = &wire.Item{Item: p.lastKey(entry)}
			}
			break
		}
	}
	if !count {
		out.begun.EndList()
	}
	if capacity.Wanted(in.ReturnConsumedCapacity) {
		units := capacity.ReadUnits(entryBytes, in.ConsistentRead.IsTrue())
		if p.index != nil {
			tally.AddIndex(p.index.Name, units)
		} else {
			tally.Table += units
		}
		out.ConsumedCapacity = tally.Report(*in.TableName, p.table, in.ReturnConsumedCapacity)
	}
	return out, nil
}

// selection is what a page has of an entry.
type selection struct {
	item         attr.Item // nil: the filter leaves nothing of it
	entry        attr.Sizes
	fetchedBytes int
}

// selectOf applies the filter and the projection of a read to an entry.
func (s *Server) selectOf(ctx context.Context, p *readPlan, stored layout.Stored) (selection, error) {
	entry, err := stored.Item()
	if err != nil {
		return selection{}, err
	}
	out := selection{entry: entry.Sizes()}
	item := entry
	if p.fetch {
		if item, err = s.store.GetItem(ctx, p.table, p.table.Key.KeyOf(entry)); err != nil {
			return out, err
		}
		out.fetchedBytes = item.Size()
	}
	switch {
	case item == nil: // it was deleted since
	case p.filter != nil && !p.filter.Eval(item):
	case p.projection != nil:
		out.item = p.projection.Apply(item)
	case is(p.in.Select, "ALL_ATTRIBUTES"):
		out.item = item
	default:
		out.item = entry // what was fetched was for the filter
	}
	return out, nil
}
