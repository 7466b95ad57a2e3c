package emu

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/load"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/execution"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/engine"
)

const (
	// batchBytes is the size from which a batch of a result is sent, and pieceBytes the largest
	// piece of a batch in one message: clients of emulators receive at most 4 MiB.
	batchBytes = 2 << 20
	pieceBytes = 1 << 20

	// maxResultRow is the maximum size of a result row in memory, in bytes. Its values may share
	// memory, but their encodings do not.
	maxResultRow = 64 << 20
)

// ExecuteQuery runs a prepared query, or a query that it prepares itself. The tables are read in their
// state at the beginning of the call.
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#google.bigtable.v2.Bigtable.ExecuteQuery
func (c *call) ExecuteQuery(req *btpb.ExecuteQueryRequest, stream btpb.Bigtable_ExecuteQueryServer) error {
	if err := c.admitQuery(req, req.GetInstanceName(), req.GetAppProfileId()); err != nil {
		return err
	}
	prepared, err := c.toExecute(req)
	if err != nil {
		return err
	}
	c.ended.Query = prepared.described()
	out := &resultWriter{send: stream.Send, sent: &c.ended}
	if req.GetQuery() != "" { //nolint:staticcheck // deprecated, but old clients send it
		if err := stream.Send(&btpb.ExecuteQueryResponse{Response: &btpb.ExecuteQueryResponse_Metadata{Metadata: prepared.metadata}}); err != nil {
			return err
		}
	}
	params, err := bind(prepared, req.GetParams())
	if err != nil {
		return err
	}
	if token := req.GetResumeToken(); len(token) > 0 {
		if string(token) != resumeToken {
			return refusal.Invalid("resume_token", "it does not come from a response to this query")
		}
		return out.end()
	}
	views := map[string]string{}
	for name, v := range req.GetViewParameters() {
		s, ok := v.GetKind().(*btpb.Value_StringValue)
		if !ok {
			return refusal.Invalid("view_parameters", "%s: must be a string_value", name)
		}
		views[name] = s.StringValue
	}
	ctx := stream.Context()
	rows, err := execution.Run(ctx, prepared.plan, execution.Options{
		Tables: tables{c, prepared.instance, prepared.plan.IncompleteViews}, Params: params, Memory: c.queryMemory,
		Functions: &function.Context{NowMicros: c.now().UnixMicro(), ViewParameters: views, Cluster: c.at.Cluster, Random: c.random},
	})
	if err != nil {
		return refusal.OfQuery(err)
	}
	defer func() { _ = rows.Close() }()
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = out.add(row, prepared.plan.Columns)
		}
		if err != nil {
			return refusal.OfQuery(err)
		}
	}
	if err := ctx.Err(); err != nil { // a canceled scan ends like a finished one
		return refusal.Of(err)
	}
	if err := out.flush(); err != nil {
		return err
	}
	return out.end()
}

// toExecute returns the prepared query that a request names, or prepares the text in the request.
// A prepared query has expired if a table, family or view that it uses was deleted or has
// changed.
func (c *call) toExecute(req *btpb.ExecuteQueryRequest) (*preparedQuery, error) {
	text, token := req.GetQuery(), req.GetPreparedQuery() //nolint:staticcheck // deprecated, but old clients send it
	switch {
	case (text == "") == (len(token) == 0):
		return nil, refusal.Invalid("prepared_query", "exactly one of query and prepared_query must be set")
	case text != "":
		types := map[string]*btpb.Type{}
		for name, v := range req.GetParams() {
			if types[name] = v.GetType(); v.GetType() == nil {
				return nil, refusal.UntypedParam(name)
			}
		}
		return c.prepare(req.GetInstanceName(), text, types)
	case req.GetDataFormat() != nil:
		return nil, refusal.Invalid("data_format", "must be empty if prepared_query is set")
	}
	p, err := c.queries.find(token, c.now())
	if err != nil {
		return nil, err
	}
	if p.instance != req.GetInstanceName() {
		return nil, refusal.InvalidPreparedQuery()
	}
	current := c.catalog(c.db, p.instance)
	for _, use := range p.plan.Views {
		if query, ok := current.View(use.View); !ok || query != use.Query {
			return nil, refusal.ExpiredQuery(1)
		}
	}
	for _, use := range p.plan.Bundles {
		b, err := admin.FindSchemaBundle(c.db, "name", current.bundleName(use.Table, use.Bundle))
		if err != nil || b.GetEtag() != use.Version {
			return nil, refusal.ExpiredQuery(1)
		}
	}
	for _, use := range p.plan.Tables {
		t, err := c.db.Table(resname.TablesOf(p.instance) + use.Table)
		if use.Materialized != 0 {
			switch v, err := c.views.Table(p.instance + "/materializedViews/" + use.Table); {
			case err != nil:
				return nil, err
			case v.Rows != use.Materialized:
				return nil, refusal.ExpiredQuery(1)
			}
			continue
		}
		if err != nil {
			return nil, refusal.ExpiredQuery(1)
		}
		for _, name := range use.Families {
			if admin.LookUpFamily(t, name) == nil {
				return nil, refusal.ExpiredQuery(2)
			}
		}
	}
	return p, nil
}

// bind checks given, the parameters of a request, against those of p, and returns their values by
// lower-case name.
func bind(p *preparedQuery, given map[string]*btpb.Value) (map[string]value.Value, error) {
	out := make(map[string]value.Value, len(p.types))
	for _, name := range slices.Sorted(maps.Keys(p.types)) {
		v, ok := given[name]
		if !ok {
			return nil, refusal.New(codes.InvalidArgument, "params does not contain key '%s'", name)
		}
		got, want := value.KindField(v.GetType()), value.KindField(p.types[name])
		of, err := value.TypeFromProto(v.GetType())
		switch {
		case v.GetType() == nil:
			return nil, refusal.UntypedParam(name)
		case got != want:
			return nil, refusal.New(codes.InvalidArgument, "params '%s' has type %s but expected type %s", name, got, want)
		case err != nil || !of.Equal(p.params[strings.ToLower(name)]):
			return nil, refusal.New(codes.InvalidArgument, "params '%s' has type %v but expected type %v", name, of, p.params[strings.ToLower(name)])
		}
		if out[strings.ToLower(name)], err = value.FromProto(v, of); err != nil {
			return nil, refusal.Invalid("params", "%s: %v", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := p.types[name]; !ok {
			return nil, refusal.Invalid("params", "%q is not a parameter of the prepared query", name)
		}
	}
	return out, nil
}

// tables opens the tables of an instance as the answering cluster sees them. It counts the rows that are read.
type tables struct {
	c          *call
	instance   string
	incomplete bool // materialized views are read while they are populated
}

// Scan scans rows of a table.
func (t tables) Scan(ctx context.Context, id string, rows filter.RowSet, reverse bool) (execution.Source, error) {
	of, err := t.find(ctx, id)
	if err != nil {
		return nil, err
	}
	spans, ok := engineSpans(nil, rows)
	if !ok {
		return noRows{}, nil
	}
	scan, err := t.c.scan(ctx, of, t.c.at, engine.ScanOptions{Spans: spans, Reverse: reverse})
	if err != nil {
		return nil, err
	}
	counted := countedScan{scan, t.c.ended.Query}
	table := t.c.load(ctx, &btpb.ReadRowsRequest{TableName: of.resource()}, nil)
	if table == nil {
		return counted, nil
	}
	s := &loadScan{countedScan: counted}
	var first []byte
	if len(spans) > 0 { // otherwise the whole table
		first = spans[0].Start
	}
	s.load.Begin(table, first)
	return s, nil
}

// countedScan counts the rows of a scan.
type countedScan struct {
	replica.Scan
	query *CallQuery
}

// NextRow implements execution.Source.
func (s countedScan) NextRow() bool {
	ok := s.Scan.NextRow()
	if ok {
		s.query.RowsRead++
	}
	return ok
}

// loadScan also counts the load of each row.
type loadScan struct {
	countedScan
	load load.Scan
}

// NextRow implements execution.Source.
func (s *loadScan) NextRow() bool {
	ok := s.countedScan.NextRow()
	if ok {
		s.load.Row(s.Row())
	}
	return ok
}

// NextCell implements execution.Source.
func (s *loadScan) NextCell() bool {
	ok := s.Scan.NextCell()
	if ok {
		c := s.Cell()
		s.load.Cell(len(c.Qualifier) + len(c.Value))
	}
	return ok
}

// Close implements execution.Source.
func (s *loadScan) Close() error {
	s.load.End()
	return s.Scan.Close()
}

// find returns the table or, if it does not exist, the materialized view with the given id.
func (t tables) find(ctx context.Context, id string) (target, error) {
	of, err := t.c.db.Table(resname.TablesOf(t.instance) + id)
	if errors.Is(err, engine.ErrTableNotFound) {
		return t.c.materializedTarget(ctx, t.instance+"/materializedViews/"+id, t.incomplete)
	}
	return target{Table: of}, err
}

// noRows is an empty scan.
type noRows struct{ execution.Source }

func (noRows) NextRow() bool { return false }
func (noRows) Err() error    { return nil }
func (noRows) Close() error  { return nil }

// resumeToken is the token at the end of a result: everything was sent.
const resumeToken = "end"

// resultWriter sends rows in batches.
type resultWriter struct {
	send  func(*btpb.ExecuteQueryResponse) error
	sent  *Call  // receives the number of rows and bytes
	data  []byte // the encoding of the batch, a ProtoRows
	rows  int    // in the batch
	begun bool   // a message was sent
}

// valuesField is the field number of ProtoRows.values.
const valuesField = 2

// add adds a row, and sends the batch that it completes. Values are encoded at once, since they are valid
// only until the next row is read.
func (w *resultWriter) add(row []value.Value, columns []plan.Column) error {
	size := 0
	for _, v := range row {
		size += v.Size()
	}
	if size > maxResultRow {
		return value.Exhausted("a row of the result has more than %d bytes", maxResultRow)
	}
	for i, v := range row {
		var err error
		if w.data, err = value.AppendProto(w.data, valuesField, v, columns[i].Type); err != nil {
			return err
		}
	}
	w.rows++
	if len(w.data) < batchBytes {
		return nil
	}
	return w.flush()
}

// castagnoli is the table of the checksums of batches.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// flush sends the batch. The first one is sent even if it is empty, then without a checksum.
func (w *resultWriter) flush() error {
	if w.begun && len(w.data) == 0 {
		return nil
	}
	data := w.data
	sum := crc32.Checksum(data, castagnoli)
	for last := false; !last; {
		piece := data[:min(len(data), pieceBytes)]
		data = data[len(piece):]
		last = len(data) == 0
		set := &btpb.PartialResultSet{
			PartialRows: &btpb.PartialResultSet_ProtoRowsBatch{ProtoRowsBatch: &btpb.ProtoRowsBatch{BatchData: piece}},
			Reset_:      !w.begun,
		}
		if last && len(w.data) > 0 {
			set.BatchChecksum = &sum
		}
		w.begun = true
		if err := w.send(results(set)); err != nil {
			return err
		}
	}
	w.sent.Rows += w.rows
	w.sent.Bytes += int64(len(w.data))
	w.data, w.rows = nil, 0 // the messages may still refer to the data
	return nil
}

// end sends the resume token after the last batch.
func (w *resultWriter) end() error {
	return w.send(results(&btpb.PartialResultSet{ResumeToken: []byte(resumeToken)}))
}

func results(set *btpb.PartialResultSet) *btpb.ExecuteQueryResponse {
	return &btpb.ExecuteQueryResponse{Response: &btpb.ExecuteQueryResponse_Results{Results: set}}
}
