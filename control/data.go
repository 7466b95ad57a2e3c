package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

const (
	defaultRows = 100
	// maxRows limits the entries of a page, of any kind.
	maxRows = 1000
	// maxPageBytes is the size at which a page of rows ends.
	maxPageBytes = 4 << 20
)

// Bytes represents bytes in JSON: as base64, and also as text if they are UTF-8. Requests may
// contain either form.
type Bytes struct {
	Base64 string  `json:"base64"`
	Text   *string `json:"text,omitempty"`
}

func bytesOf(b []byte) Bytes {
	out := Bytes{Base64: base64.StdEncoding.EncodeToString(b)}
	if utf8.Valid(b) {
		text := string(b)
		out.Text = &text
	}
	return out
}

func (b Bytes) decode() ([]byte, error) {
	if b.Text != nil && b.Base64 == "" {
		return []byte(*b.Text), nil
	}
	out, err := base64.StdEncoding.DecodeString(b.Base64)
	if err != nil {
		return nil, badRequest("%q is not base64", b.Base64)
	}
	return out, nil
}

func (s *Server) info(*http.Request) (any, error) {
	o := s.opts.Lab.Options()
	return map[string]any{
		"version": s.opts.Version, "project": o.Project, "instance": o.Instance,
		"bigtable": s.opts.Bigtable, "dynamodb": s.opts.DynamoDB,
		"clock": s.clockNow(), "faults": len(s.armed()), "snapshots": len(s.snapshots.list()),
		"paused": s.opts.Paused, "demo": s.opts.Demo, "demoLoaded": s.demoLoaded.Load(), "events": s.moment(),
	}, nil
}

// state returns the parts of the server's state that experiments change, which info includes.
func (s *Server) state() any {
	return struct {
		Clock     clockState `json:"clock"`
		Faults    int        `json:"faults"`
		Snapshots int        `json:"snapshots"`
	}{s.clockNow(), len(s.armed()), len(s.snapshots.list())}
}

// resume continues the paused test.
func (s *Server) resume(*http.Request) (any, error) {
	if s.opts.Resume == nil {
		return nil, &Error{http.StatusConflict, "not_paused", "no test is paused", "env.Pause of testkit pauses one"}
	}
	s.opts.Resume()
	return nothing{}, nil
}

type family struct {
	Name      string `json:"name"`
	GC        string `json:"gc"`
	Aggregate string `json:"aggregate,omitempty"` // sum, min, max or hll
}

// aggregates are the names of the kinds of aggregate families.
var aggregates = map[engine.Aggregate]string{engine.AggregateSum: "sum", engine.AggregateMin: "min", engine.AggregateMax: "max", engine.AggregateHLL: "hll"}

type table struct {
	Name     string   `json:"name"`     // its resource name
	Instance string   `json:"instance"` // its id
	Table    string   `json:"table"`    // its id
	Families []family `json:"families"`
	Splits   []Bytes  `json:"splits,omitempty"`
	DynamoDB []string `json:"dynamodb,omitempty"` // tables whose items are stored in its rows; only in lists
	Own      bool     `json:"own,omitempty"`      // a table of the DynamoDB endpoint itself
}

func tableOf(t *engine.Table) table {
	instance, id := ids(t.Name)
	out := table{Name: t.Name, Instance: instance, Table: id, Families: []family{}, Own: strings.HasPrefix(id, lab.OwnTables)}
	for _, f := range t.Families {
		out.Families = append(out.Families, family{f.Name, lab.RuleText(&f.GC), aggregates[f.Aggregate]})
	}
	for _, split := range t.Splits {
		out.Splits = append(out.Splits, bytesOf(split))
	}
	return out
}

// ids returns the instance and the table in the resource name of a table.
func ids(name string) (instance, table string) {
	parent, table, _ := strings.Cut(name, "/tables/")
	return parent[strings.LastIndex(parent, "/")+1:], table
}

// maxDescribed limits the DynamoDB tables that GET tables describes.
const maxDescribed = 500

// describedTable summarizes a DynamoDB table.
type describedTable struct {
	Key     []describedKey `json:"key"`   // the partition key, then the sort key
	Items   int64          `json:"items"` // as DescribeTable counts them
	Indexes []string       `json:"indexes,omitempty"`
	Stream  bool           `json:"stream,omitempty"`
}

type describedKey struct {
	Name string `json:"name"`
	Type string `json:"type"` // S, N or B
}

// describe returns the summary of a DynamoDB table.
func (s *Server) describe(ctx context.Context, name string) (describedTable, error) {
	type index struct{ IndexName string }
	var is struct {
		Table struct {
			AttributeDefinitions                          []struct{ AttributeName, AttributeType string }
			KeySchema                                     []struct{ AttributeName string }
			ItemCount                                     int64
			GlobalSecondaryIndexes, LocalSecondaryIndexes []index
			StreamSpecification                           struct{ StreamEnabled bool }
		}
	}
	request, _ := json.Marshal(map[string]string{"TableName": name}) // a map of strings never fails
	answer, err := s.opts.Endpoint.Call(ctx, "DescribeTable", request)
	if err == nil {
		err = json.Unmarshal(answer, &is)
	}
	types := map[string]string{}
	for _, a := range is.Table.AttributeDefinitions {
		types[a.AttributeName] = a.AttributeType
	}
	out := describedTable{Key: []describedKey{}, Items: is.Table.ItemCount, Stream: is.Table.StreamSpecification.StreamEnabled}
	for _, k := range is.Table.KeySchema {
		out.Key = append(out.Key, describedKey{k.AttributeName, types[k.AttributeName]})
	}
	for _, ix := range slices.Concat(is.Table.GlobalSecondaryIndexes, is.Table.LocalSecondaryIndexes) {
		out.Indexes = append(out.Indexes, ix.IndexName)
	}
	return out, err
}

func (s *Server) tables(r *http.Request) (any, error) {
	out := struct {
		Bigtable  []table                   `json:"bigtable"`
		DynamoDB  []string                  `json:"dynamodb"`
		Described map[string]describedTable `json:"described,omitempty"` // with ?describe=true
	}{[]table{}, []string{}, nil}
	describe, err := yes(r.URL.Query(), "describe", false)
	if err != nil {
		return nil, err
	}
	names, err := s.dynamoDBTables(own(r))
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	only, one := query.Get("dynamodb"), query.Has("dynamodb")
	if one {
		if !slices.Contains(names, only) {
			return nil, notFound("DynamoDB table", only, nearestTable(only, names))
		}
		names = []string{only}
	}
	if describe {
		out.Described = map[string]describedTable{}
		for _, name := range names[:min(len(names), maxDescribed)] {
			// A table may be deleted meanwhile, or its definition may be damaged.
			if d, err := s.describe(own(r), name); err == nil {
				out.Described[name] = d
			}
		}
	}
	over := map[string][]string{} // by the name of the Bigtable table
	for _, name := range names {
		out.DynamoDB = append(out.DynamoDB, name)
		// The rows of a table without its mapping cannot be read as items.
		if m, err := s.opts.Endpoint.Mapping(own(r), name); err == nil {
			at := s.opts.Lab.TableName(m.TargetTable())
			over[at] = append(over[at], name)
		}
	}
	for _, t := range s.opts.Lab.DB().Tables("") {
		shown := tableOf(t)
		shown.DynamoDB = over[t.Name]
		if one && shown.DynamoDB == nil {
			continue
		}
		out.Bigtable = append(out.Bigtable, shown)
	}
	return out, nil
}

// dynamoDBTables returns the names of the DynamoDB tables; none if the endpoint is closed.
func (s *Server) dynamoDBTables(ctx context.Context) ([]string, error) {
	names, err := s.opts.Endpoint.Tables(ctx)
	if errors.Is(err, dynamodb.ErrClosed) {
		return nil, nil
	}
	return names, err
}

// tableName returns the resource name of the table in a path, in the lab's project by default
// or in ?project=.
func (s *Server) tableName(r *http.Request) string {
	project := cmp.Or(r.URL.Query().Get("project"), s.opts.Lab.Options().Project)
	return "projects/" + project + "/instances/" + r.PathValue("instance") + "/tables/" + r.PathValue("table")
}

func (s *Server) table(r *http.Request) (any, error) {
	name := s.tableName(r)
	t, err := s.opts.Lab.DB().Table(name)
	if err != nil {
		return nil, noTable(own(r), s, name)
	}
	mappings, err := s.mappingsOver(r)
	if err != nil {
		return nil, err
	}
	samples, err := s.opts.Lab.DB().SampleRowKeys(r.Context(), name)
	if err != nil {
		return nil, err
	}
	return struct {
		table
		Keys  []ruleKeys `json:"keys,omitempty"` // of a table with mappings
		Bytes int64      `json:"bytes"`          // approximate, from SampleRowKeys
	}{tableOf(t), keysOf(mappings), samples[len(samples)-1].OffsetBytes}, nil
}

type cell struct {
	Family    string `json:"family"`
	Qualifier Bytes  `json:"qualifier"`
	Timestamp int64  `json:"timestamp"` // microseconds
	Value     Bytes  `json:"value"`
}

type row struct {
	Key   Bytes     `json:"key"`
	Parts []keyPart `json:"parts,omitempty"` // of the key, by the mapping of the table
	Cells []cell    `json:"cells"`           // in storage order, all versions
	Count int       `json:"count,omitempty"` // number of cells, if they are omitted
}

func rowOf(r btclient.Row) row {
	out := row{Key: bytesOf(r.Key), Cells: make([]cell, len(r.Cells))}
	for i, c := range r.Cells {
		out.Cells[i] = cell{Family: c.Family, Qualifier: bytesOf(c.Qualifier), Timestamp: c.Timestamp, Value: bytesOf(c.Value)}
	}
	return out
}

// client returns a client of the instance in a path, and the id of the table there. It
// returns an error if the table does not exist.
func (s *Server) client(r *http.Request) (*btclient.Client, string, error) {
	name := s.tableName(r)
	if _, err := s.opts.Lab.DB().Table(name); err != nil {
		return nil, "", noTable(own(r), s, name)
	}
	parent, id, _ := strings.Cut(name, "/tables/")
	project, instance, _ := strings.Cut(strings.TrimPrefix(parent, "projects/"), "/instances/")
	return btclient.New(s.opts.Lab.Bigtable().Conn(), project, instance, btclient.Options{}), id, nil
}

// param returns a parameter, given as text, or as base64 with "64" appended to its name.
func param(q url.Values, name string) ([]byte, error) {
	if q.Has(name + "64") {
		b, err := base64.StdEncoding.DecodeString(q.Get(name + "64"))
		if err != nil {
			return nil, badRequest("%s64 is not base64", name)
		}
		return b, nil
	}
	return []byte(q.Get(name)), nil
}

// yes returns a boolean parameter; otherwise is the default.
func yes(q url.Values, name string, otherwise bool) (bool, error) {
	switch text := q.Get(name); text {
	case "":
		return otherwise, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, badRequest("%s is %q, want true or false", name, text)
	}
}

func limit(q url.Values, otherwise int) (int, error) {
	if !q.Has("limit") {
		return otherwise, nil
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > maxRows {
		return 0, badRequest("limit is %q, want 1 to %d", q.Get("limit"), maxRows)
	}
	return n, nil
}

// rows reads rows of a table, or of a materialized view if no table has the name.
func (s *Server) rows(r *http.Request) (any, error) {
	client, id, err := s.client(r)
	if err != nil {
		if v := viewNamed(own(r), s, s.tableName(r)); v != nil && v.Materialized != nil {
			return s.rowsOfView(r, r.PathValue("table"))
		}
		return nil, err
	}
	mappings, err := s.mappingsOver(r)
	if err != nil {
		return nil, err
	}
	return rowsPage(r, client, btclient.Read{Table: id}, mappings)
}

// rowsPage reads the rows that the parameters of a request select, up to a limit. read names the table or
// the view.
func rowsPage(r *http.Request, client *btclient.Client, read btclient.Read, mappings []*mapping.Mapping) (any, error) {
	q := r.URL.Query()
	most, err := limit(q, defaultRows)
	var bounds [3][]byte
	for i, name := range []string{"start", "end", "prefix"} {
		if err == nil {
			bounds[i], err = param(q, name)
		}
	}
	var cursor []byte
	if err == nil {
		if cursor, err = base64.RawURLEncoding.DecodeString(q.Get("cursor")); err != nil {
			err = badRequest("cursor was not returned by an earlier response")
		}
	}
	if err != nil {
		return nil, err
	}
	span, _ := cells.Span{Start: bounds[0], End: bounds[1]}.Intersect(cells.Span{Start: bounds[2], End: cells.PrefixEnd(bounds[2])})
	filter, err := filterOf(q)
	if err != nil {
		return nil, err
	}
	reverse, err := yes(q, "reverse", false)
	keys, err1 := yes(q, "keys", false)
	if err := cmp.Or(err, err1); err != nil {
		return nil, err
	}
	switch {
	case len(cursor) == 0:
	case reverse:
		span.End = cursor
	default:
		span.Start = append(cursor, 0)
	}
	out := struct {
		Rows   []row  `json:"rows"`
		Cursor string `json:"cursor,omitempty"` // of the next page
	}{Rows: []row{}}
	if len(span.End) > 0 && bytes.Compare(span.Start, span.End) >= 0 {
		return out, nil
	}
	size := 0
	read.Spans, read.Reverse, read.Limit, read.Filter = []cells.Span{span}, reverse, int64(most)+1, filter
	for found, err := range client.Read(own(r), read) {
		if err != nil {
			return nil, err
		}
		if len(out.Rows) == most || size > maxPageBytes {
			last, _ := out.Rows[len(out.Rows)-1].Key.decode() // of this page
			out.Cursor = base64.RawURLEncoding.EncodeToString(last)
			break
		}
		for _, c := range found.Cells {
			size += len(c.Qualifier) + len(c.Value) + 64
		}
		shown := row{Key: bytesOf(found.Key), Cells: []cell{}, Count: len(found.Cells)}
		if !keys {
			shown = rowOf(found)
		}
		shown.Parts = partsBy(mappings, found)
		out.Rows = append(out.Rows, shown)
	}
	return out, nil
}

// filterOf returns the filter of ?match=, a regular expression of whole row keys, and
// ?filter=, a RowFilter in JSON; nil without them.
func filterOf(q url.Values) (*btpb.RowFilter, error) {
	var all []*btpb.RowFilter
	match, err := param(q, "match")
	if err != nil {
		return nil, err
	}
	if len(match) > 0 {
		all = append(all, &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: match}})
	}
	if text := q.Get("filter"); text != "" {
		given := &btpb.RowFilter{}
		if err := protojson.Unmarshal([]byte(text), given); err != nil {
			return nil, badRequest("filter is %.200q, want a RowFilter in JSON, such as {\"cellsPerColumnLimitFilter\":1}: %v", text, err)
		}
		all = append(all, given)
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return btclient.Chain(all...), nil
}

func (s *Server) row(r *http.Request) (any, error) {
	found, err := s.namedRow(r)
	if err != nil {
		return nil, err
	}
	return rowOf(*found), nil
}

// namedRow reads the row that a request names.
func (s *Server) namedRow(r *http.Request) (*btclient.Row, error) {
	client, id, err := s.client(r)
	if err != nil {
		return nil, err
	}
	key, err := param(r.URL.Query(), "key")
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		return nil, badRequest("set key or key64 to the key of the row")
	}
	for found, err := range client.Read(own(r), btclient.Read{Table: id, Keys: [][]byte{key}}) {
		if err != nil {
			return nil, err
		}
		return &found, nil
	}
	return nil, notFound("row", string(key), "GET "+Prefix+"tables/{instance}/{table}/rows lists them")
}

// putRow is a row to write.
type putRow struct {
	Key    Bytes `json:"key"`
	Delete bool  `json:"delete"` // delete the whole row before setting cells
	Cells  []struct {
		Family    string `json:"family"`
		Qualifier Bytes  `json:"qualifier"`
		Timestamp *int64 `json:"timestamp"` // microseconds; default: the time of the server
		Value     Bytes  `json:"value"`
	} `json:"cells"`
}

func (s *Server) putRows(r *http.Request) (any, error) {
	client, id, err := s.client(r)
	if err != nil {
		return nil, err
	}
	var in struct {
		Rows []putRow `json:"rows"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	for i, row := range in.Rows {
		key, muts, err := row.mutations()
		if err != nil {
			return nil, err
		}
		if err := client.MutateRow(own(r), id, key, muts); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return map[string]int{"rows": len(in.Rows)}, nil
}

func (p putRow) mutations() (key []byte, muts []*btpb.Mutation, err error) {
	if key, err = p.Key.decode(); err != nil {
		return nil, nil, err
	}
	if p.Delete {
		muts = append(muts, btclient.DeleteRow())
	}
	for _, c := range p.Cells {
		qualifier, err := c.Qualifier.decode()
		if err != nil {
			return nil, nil, err
		}
		value, err := c.Value.decode()
		if err != nil {
			return nil, nil, err
		}
		at := int64(-1) // the time of the server
		if c.Timestamp != nil {
			at = *c.Timestamp
		}
		muts = append(muts, btclient.SetCell(c.Family, qualifier, at, value))
	}
	return key, muts, nil
}

func (s *Server) items(r *http.Request) (any, error) {
	q := r.URL.Query()
	most, err := limit(q, defaultRows)
	if err != nil {
		return nil, err
	}
	scan := map[string]any{"TableName": r.PathValue("table"), "Limit": most}
	if q.Has("cursor") {
		key, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
		if err != nil || !json.Valid(key) {
			return nil, badRequest("cursor was not returned by an earlier response")
		}
		scan["ExclusiveStartKey"] = json.RawMessage(key)
	}
	if q.Has("index") {
		scan["IndexName"] = q.Get("index")
	}
	request, err := json.Marshal(scan)
	if err != nil {
		return nil, err
	}
	answer, err := s.opts.Endpoint.Call(own(r), "Scan", request)
	if err != nil {
		return nil, s.naming(r, err)
	}
	var page struct {
		Items            []json.RawMessage
		LastEvaluatedKey json.RawMessage
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return nil, err
	}
	return struct {
		Items  []json.RawMessage `json:"items"`
		Cursor string            `json:"cursor,omitempty"` // of the next page
	}{page.Items, base64.RawURLEncoding.EncodeToString(page.LastEvaluatedKey)}, nil
}

func (s *Server) putItems(r *http.Request) (any, error) {
	var in struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	for i, item := range in.Items {
		if _, err := attr.UnmarshalItem(item); err != nil {
			return nil, badRequest("item %d is %.200s, want attributes in DynamoDB's JSON, such as {\"id\":{\"S\":\"a\"}}: %v", i, item, err)
		}
		request, err := json.Marshal(map[string]any{"TableName": r.PathValue("table"), "Item": item})
		if err != nil {
			return nil, badRequest("item %d: %v", i, err)
		}
		if _, err := s.opts.Endpoint.Call(own(r), "PutItem", request); err != nil {
			return nil, s.naming(r, err)
		}
	}
	return map[string]int{"items": len(in.Items)}, nil
}
