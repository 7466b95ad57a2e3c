package facade

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/vectors"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// searchVectorsInput is the request of SearchVectors.
type searchVectorsInput struct {
	TableName                 *string
	IndexName                 *string
	ReturnConsumedCapacity    *string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]wire.Value
	ProjectionExpression      *string
	SearchVector              []wire.Value
	SearchConditionExpression *string
	TopK                      *int32
}

// searchVectorsOutput is the response of SearchVectors.
type searchVectorsOutput struct {
	ConsumedCapacity *capacity.Bytes `json:",omitzero"`
	SearchResults    []searchResultItem
}

type searchResultItem struct {
	Item  wire.Item
	Score wire.Double
}

const (
	maxTopK             = 100
	maxSearchBytes      = 16 << 20 // of the items in a response
	minSearchVectorName = 3
)

// searchVectors returns the items of a vector index that are nearest to a vector. It compares
// the vectors of all items, and keeps only the best results. If the partition key of the index
// is that of the table, it reads only one partition of the table. Throttling charges a search
// in read units of the table, by the size of the compared entries (assumption).
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_SearchVectors.html
func (s *Server) searchVectors(ctx context.Context, in *searchVectorsInput) (*searchVectorsOutput, error) {
	v := s.validator("SearchVectors")
	name := v.TableName(in.TableName)
	v.Length("IndexName", in.IndexName, minSearchVectorName, request.MaxTableNameChars)
	if len(in.SearchVector) == 0 {
		v.Fail("SearchVector", "'[]'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
	}
	v.AtLeast("TopK", in.TopK, 1)
	v.ReturnOptions(in.ReturnConsumedCapacity, nil)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if *in.TopK > maxTopK {
		return nil, awserr.Validation(awserr.MsgSearchTopK, *in.TopK)
	}
	p, err := in.plan(v)
	if err != nil {
		return nil, err
	}
	if p.table, err = s.itemTable(ctx, name); err != nil {
		return nil, err
	}
	if p.index = p.table.VectorIndex(*in.IndexName); p.index == nil {
		// Another process may have created it.
		if p.table, err = s.store.TableNow(ctx, name); err != nil {
			return nil, controlError(err, name)
		}
		p.index = p.table.VectorIndex(*in.IndexName)
	}
	switch {
	case p.index == nil:
		return nil, awserr.Validation(awserr.MsgIndexUnknown, *in.IndexName)
	case p.index.StatusAt(s.opts.Now()) == tabledef.StatusCreating:
		return nil, awserr.Validation(awserr.MsgSearchBackfilling, *in.IndexName)
	}
	if err := p.setVector(in.SearchVector); err != nil {
		return nil, err
	}
	if err := p.checkCondition(v); err != nil {
		return nil, err
	}
	partition := p.partition()
	reading, err := s.throttle.Read(p.table, nil, partition, false, 1)
	if s.keys.Use(p.table, nil, partition, err); err != nil {
		return nil, err
	}
	out, size, err := p.search(s.searched(ctx, p.table, partition), int(*in.TopK))
	if err != nil {
		return nil, err
	}
	reading.Consumed(capacity.Tally{Table: capacity.ReadUnits(size, false)})
	if capacity.Wanted(in.ReturnConsumedCapacity) {
		out.ConsumedCapacity = &capacity.Bytes{VectorSearchRequestBytes: wire.Double(vectors.AtLeast(size))}
	}
	return out, nil
}

// searchPlan is a SearchVectors request after validation.
type searchPlan struct {
	table      *tabledef.Table
	index      *tabledef.VectorIndex
	vector     []float32
	condition  *expr.SearchCondition
	projection *expr.Projection // nil: all attributes except the vector
}

// plan parses the expressions of the request.
func (in *searchVectorsInput) plan(v *validator) (*searchPlan, error) {
	err := v.ExpressionStyle(in.ExpressionAttributeNames, in.ExpressionAttributeValues, []request.ExpressionParameter{
		{Name: "ProjectionExpression", Text: in.ProjectionExpression},
		{Name: "SearchConditionExpression", Text: in.SearchConditionExpression},
	}, nil)
	if err != nil {
		return nil, err
	}
	placeholders, err := v.Placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	p := &searchPlan{}
	if text := in.SearchConditionExpression; text != nil {
		if p.condition, err = expr.ParseSearchCondition(*text, placeholders); err != nil {
			return nil, v.Expression(err)
		}
	}
	if text := in.ProjectionExpression; text != nil {
		if p.projection, err = expr.ParseProjection(*text, placeholders); err != nil {
			return nil, v.Expression(err)
		}
	}
	return p, v.Expression(placeholders.CheckUsed())
}

// setVector sets the search vector. It rejects invalid elements, and then a number of elements
// other than the dimensions of the index.
func (p *searchPlan) setVector(elements []wire.Value) error {
	p.vector = make([]float32, len(elements))
	for i, element := range elements {
		f, problem := vectors.ParseElement(element.Value)
		if element.Err != nil || problem != vectors.Fits {
			return awserr.Validation(awserr.MsgSearchElements)
		}
		p.vector[i] = f
	}
	if len(elements) != p.index.Dimensions {
		return awserr.Validation(awserr.MsgSearchDimensions, len(elements), p.index.Dimensions)
	}
	return nil
}

// checkCondition checks the condition against the search schema of the index. If the index has
// a partition key, the condition must fix it.
func (p *searchPlan) checkCondition(v *validator) error {
	hash := attr.Value{}
	for _, t := range p.condition.Terms() {
		if !slices.Contains(p.index.Schema, t.Name) {
			return awserr.Validation(awserr.MsgSearchOutsideSchema, t.Name)
		}
		if t.Name == p.index.Hash {
			hash = t.Value
		}
	}
	if err := p.condition.Check(); err != nil {
		return v.Expression(err)
	}
	if p.index.Hash == "" {
		return nil
	}
	switch want := p.table.AttributeType(p.index.Hash); {
	case hash.IsAbsent():
		return awserr.Validation(awserr.MsgSearchHashMissing)
	case hash.Type != want:
		return awserr.Validation(awserr.MsgSearchHashType, p.index.Hash, hash.Type, want)
	case tablespec.IsEmpty(hash):
		return awserr.Validation(awserr.MsgKeyEmpty, tablespec.KindName(hash.Type), p.index.Hash)
	}
	return nil
}

// matches reports whether an item is in the searched partition of the index, and whether it
// satisfies the whole condition.
func (p *searchPlan) matches(item attr.Item) (inPartition, all bool) {
	all = true
	for _, t := range p.condition.Terms() {
		if attr.Equal(item[t.Name], t.Value) {
			continue
		}
		if all = false; t.Name == p.index.Hash {
			return false, false
		}
	}
	return true, all
}

// partition returns the partition key of the table if the condition fixes it and it is also the
// partition key of the index. Otherwise it returns nil.
func (p *searchPlan) partition() attr.Item {
	key := p.table.Key.Hash.Name
	for _, t := range p.condition.Terms() {
		if key == p.index.Hash && t.Name == key {
			return attr.Item{key: t.Value}
		}
	}
	return nil
}

// searched yields the items of t that a search reads: those of a partition, or all items if
// partition is nil.
func (s *Server) searched(ctx context.Context, t *tabledef.Table, partition attr.Item) iter.Seq2[layout.Stored, error] {
	if partition == nil {
		return s.store.Scan(ctx, t, nil, 0, 1, nil)
	}
	return s.store.Query(ctx, t, nil, attr.KeyRange{Hash: partition[t.Key.Hash.Name]}, true, nil)
}

// search compares items, and returns up to most of the nearest ones. size is the sum of the
// sizes of all index entries in the searched partition. The service charges for the entries
// that its approximate search reads, which differ from call to call.
func (p *searchPlan) search(items iter.Seq2[layout.Stored, error], most int) (out *searchVectorsOutput, size int, err error) {
	nearest := vectors.NewNearest(p.index.Distance, most)
	for stored, err := range items {
		if err != nil {
			return nil, 0, err
		}
		item, err := stored.Item()
		if err != nil {
			return nil, 0, err
		}
		vector, ok := vectors.Of(p.table, p.index, item)
		inPartition, all := p.matches(item)
		if ok && inPartition {
			size += vectors.Bytes(p.table, p.index, item)
		}
		if ok && all {
			nearest.Offer(vectors.Score(p.index.Distance, p.vector, vector), func() attr.Item { return p.project(item, vector) })
		}
	}
	out = &searchVectorsOutput{SearchResults: []searchResultItem{}}
	answered := 0
	for _, r := range nearest.Results() {
		if answered += r.Item.Size(); answered > maxSearchBytes {
			return nil, 0, awserr.Validation(awserr.MsgSearchTooLarge)
		}
		out.SearchResults = append(out.SearchResults, searchResultItem{wire.Item{Item: r.Item}, wire.Double(r.Score)})
	}
	return out, size, nil
}

// project returns the attributes of an item for the response. It omits attributes that the
// index does not hold, even if the request names them.
func (p *searchPlan) project(item attr.Item, vector []float32) attr.Item {
	entry := vectors.Project(p.table, p.index, item, vector)
	if p.projection != nil {
		return p.projection.Apply(entry)
	}
	delete(entry, p.index.Attribute)
	return entry
}

// checkSearchMembers checks that the body of SearchVectors has the required members, and checks
// their types. The service reads this request with a strict decoder, whose errors name the
// position in the body. Source: captures of the service of August and October 2026. Assumptions:
// the expected types of members other than TableName and TopK, and the order of several missing
// members.
func checkSearchMembers(body []byte) error {
	members := []struct{ name, expected, kinds string }{
		{"TableName", "a string", `"`}, {"IndexName", "a string", `"`}, {"SearchVector", "a sequence", "["}, {"TopK", "i32", "0"},
	}
	seen := map[string]bool{}
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if _, err := dec.ReadToken(); err != nil {
		return nil //nolint:nilerr // the decoder of all operations rejects it
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		member := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		seen[member] = true
		for _, m := range members {
			if m.name != member {
				continue
			}
			problem := ""
			switch {
			case !strings.Contains(m.kinds, string(value.Kind())):
				problem = "type: " + serdeText(value)
			case m.expected == "i32" && bytes.ContainsAny(value, ".eE"):
				problem = "type: floating point `" + string(value) + "`"
			case m.expected == "i32":
				if _, err := strconv.ParseInt(string(value), 10, 32); err != nil {
					problem = "value: integer `" + string(value) + "`"
				}
			}
			if problem != "" {
				end := dec.InputOffset()
				if value.Kind() == '[' || value.Kind() == '{' {
					end -= int64(len(value)) // the decoder stops before the value
				}
				line, column := positionIn(body, int(end))
				return awserr.New(awserr.CodeSerialization, awserr.MsgSearchType, problem, m.expected, line, column)
			}
		}
	}
	line, column := positionIn(body, len(bytes.TrimRight(body, " \t\r\n")))
	for _, m := range members {
		if !seen[m.name] {
			return awserr.Validation(awserr.MsgSearchMissing, m.name, line, column)
		}
	}
	return nil
}

// serdeText formats a JSON value as the strict decoder of the service does in its errors.
func serdeText(value jsontext.Value) string {
	switch string(value[:1]) {
	case "n":
		return "null"
	case "t", "f":
		return "boolean `" + string(value) + "`"
	case `"`:
		return "string " + string(value)
	case "[":
		return "sequence"
	case "{":
		return "map"
	}
	if bytes.ContainsAny(value, ".eE") {
		return "floating point `" + string(value) + "`"
	}
	return "integer `" + string(value) + "`"
}

// positionIn returns the line of an offset in body, counted from 1, and the number of bytes
// before the offset in that line.
func positionIn(body []byte, offset int) (line, column int) {
	before := body[:offset]
	return 1 + bytes.Count(before, []byte{'\n'}), len(before) - 1 - bytes.LastIndexByte(before, '\n')
}
