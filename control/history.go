package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/control/internal/requests"
	"github.com/tabletop-emu/tabletop/control/lab/changestream"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// pageOfHistory is the maximum number of records that are read at a time.
const pageOfHistory = 1000

// history is everything known about a row, each list with the newest entries, the newest first.
type history struct {
	Table    string            `json:"table"` // its resource name
	Key      Bytes             `json:"key"`
	Parts    []keyPart         `json:"parts,omitempty"`
	Requests []record          `json:"requests"` // with those of their calls that name the row
	Changes  []rowChange       `json:"changes"`
	Records  []json.RawMessage `json:"records"`
	// Streamed reports whether the table has a change stream, and Recorded lists the DynamoDB
	// tables with a stream.
	Streamed bool     `json:"streamed"`
	Recorded []string `json:"recorded,omitempty"`
	More     bool     `json:"more,omitempty"` // older entries exist
	key      []byte
}

// historyOfItem returns the history of the row that holds the item in the query parameter item.
func (s *Server) historyOfItem(r *http.Request) (any, error) {
	item, err := attr.UnmarshalItem([]byte(r.URL.Query().Get("item")))
	if err != nil {
		return nil, badRequest("item is %.200q, want the key of an item in DynamoDB's JSON: %v", r.URL.Query().Get("item"), err)
	}
	m, err := s.opts.Endpoint.Mapping(own(r), r.PathValue("table"))
	switch {
	case errors.Is(err, dynamodb.ErrClosed):
		return nil, err
	case err != nil:
		return nil, notFound("table", r.PathValue("table"), tablesRemedy)
	}
	key, err := m.Locate(item)
	if err != nil {
		return nil, badRequest("item must be a key of the table: %v", err)
	}
	return s.historyOf(r, s.opts.Lab.TableName(m.TargetTable()), key)
}

// historyOfRow returns the history of a row.
func (s *Server) historyOfRow(r *http.Request) (any, error) {
	key, err := param(r.URL.Query(), "key")
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		return nil, badRequest("set key or key64 to the key of the row")
	}
	return s.historyOf(r, s.tableName(r), key)
}

func (s *Server) historyOf(r *http.Request, table string, key []byte) (any, error) {
	if _, err := s.opts.Lab.DB().Table(table); err != nil {
		return nil, noTable(own(r), s, table)
	}
	most, err := limit(r.URL.Query(), defaultRows)
	withOwn, err1 := yes(r.URL.Query(), "own", false)
	writes, err2 := yes(r.URL.Query(), "writes", false)
	if err := errors.Join(err, err1, err2); err != nil {
		return nil, err
	}
	mappings, err := s.mappingsOf(r, table)
	if err != nil {
		return nil, err
	}
	out := &history{Table: table, Key: bytesOf(key), Parts: partsBy(mappings, mapping.Row{Key: key}), Records: []json.RawMessage{}}
	out.key = key
	s.requestsAbout(own(r), out, withOwn, writes)
	out.cutRequests(most)
	if err := s.changesOf(own(r), out, mappings, most); err != nil {
		return nil, err
	}
	var records []streamRecord
	for _, m := range mappings {
		if records, err = s.recordsAbout(own(r), out, m, most, records); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(records, func(a, b streamRecord) int { return strings.Compare(b.sequence, a.sequence) })
	for _, rec := range records[:min(len(records), most)] {
		out.Records = append(out.Records, rec.RawMessage)
	}
	out.More = out.More || len(records) > most
	return out, nil
}

// cutRequests keeps the newest `most` requests, but removes reads before writes: a write
// explains the cells, and a hot row has many reads after it.
func (h *history) cutRequests(most int) {
	if len(h.Requests) <= most {
		return
	}
	h.More = true
	writes := 0
	for i := range h.Requests {
		if h.Requests[i].Write {
			writes++
		}
	}
	reads := max(0, most-writes)
	writes = most - reads
	h.Requests = slices.DeleteFunc(h.Requests, func(r record) bool {
		left := &reads
		if r.Write {
			left = &writes
		}
		*left--
		return *left < 0
	})
}

// requestsAbout sets out.Requests to the requests that name the row, or whose calls do.
// withOwn includes requests by the console itself, and writes excludes reads.
func (s *Server) requestsAbout(ctx context.Context, out *history, withOwn, writes bool) {
	calls, parents, written := map[string][]record{}, map[string]bool{}, map[string]bool{}
	s.log.Newest(func(rec *requests.Record) bool {
		switch {
		case rec.Endpoint == requests.DynamoDB:
			parents[rec.RequestID] = true
		case rec.Cause != "" && rec.Table() == out.Table && rec.Names(out.key):
			calls[rec.Cause] = append(calls[rec.Cause], recordOf(rec, false))
			written[rec.Cause] = written[rec.Cause] || rec.Writes()
		}
		return true
	})
	keys := s.itemKeys(ctx)
	_, id := ids(out.Table)
	named := func(rec *requests.Record) bool {
		found, _ := keys.of(rec)
		return slices.ContainsFunc(found, func(item itemKey) bool {
			table, row, ok := keys.row(item)
			return ok && table == id && bytes.Equal(row, out.key)
		})
	}
	out.Requests = []record{}
	s.log.Newest(func(rec *requests.Record) bool {
		write := rec.Writes() || rec.Endpoint == requests.DynamoDB && written[rec.RequestID]
		if rec.Own && !withOwn || writes && !write {
			return true
		}
		about := rec.Endpoint == requests.DynamoDB && (calls[rec.RequestID] != nil || named(rec)) ||
			rec.Endpoint == requests.Bigtable && !parents[rec.Cause] && rec.Table() == out.Table && rec.Names(out.key)
		if !about {
			return true
		}
		shown := recordOf(rec, false)
		shown.Write = write
		keys.describe(&shown, rec)
		shown.Calls = calls[rec.RequestID]
		slices.Reverse(shown.Calls)
		out.Requests = append(out.Requests, shown)
		return true
	})
}

// changesOf sets out.Changes to the newest records of the table's change stream about the
// row, at most `most` of them. It sets no changes if the table has no change stream.
func (s *Server) changesOf(ctx context.Context, out *history, mappings []*mapping.Mapping, most int) error {
	out.Changes = []rowChange{}
	reader := changestream.Reader{Lab: s.opts.Lab, Table: out.Table, Row: string(out.key), Most: pageOfHistory, Bytes: maxPageBytes}
	p := page{}
	for more := true; more; {
		found, next, again, err := reader.Read(ctx, p.from)
		if errors.Is(err, changestream.ErrNoStream) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range found {
			if c, ok := changeOf(mappings, &found[i], false); ok {
				out.Changes = append(out.Changes, c)
			}
		}
		if extra := len(out.Changes) - most; extra > 0 {
			out.Changes, out.More = slices.Delete(out.Changes, 0, extra), true
		}
		p.from, more = next, again
	}
	out.Streamed = true
	slices.Reverse(out.Changes)
	return nil
}

// recordsAbout reads the stream of m's DynamoDB table, and appends its newest records for the items
// in row out.key, at most `most` of them. It appends nothing if the table has no stream.
func (s *Server) recordsAbout(ctx context.Context, out *history, m *mapping.Mapping, most int, records []streamRecord) ([]streamRecord, error) {
	arn, err := streams{s}.latest(ctx, m.SourceTable())
	if e, ok := errors.AsType[*Error](err); ok && e.Code == "no_stream" {
		return records, nil
	}
	if err != nil {
		return nil, err
	}
	out.Recorded = append(out.Recorded, m.SourceTable())
	after := ""
	first := len(records)
	for more := true; more; {
		var found []streamRecord
		if found, more, err = (streams{s}).read(ctx, arn, after, pageOfHistory); err != nil {
			return nil, err
		}
		for _, rec := range found {
			after = rec.sequence
			var about struct {
				DynamoDB struct{ Keys json.RawMessage } `json:"dynamodb"`
			}
			if json.Unmarshal(rec.RawMessage, &about) != nil {
				continue
			}
			item, err := attr.UnmarshalItem(about.DynamoDB.Keys)
			if err != nil {
				continue
			}
			if row, err := m.Locate(item); err == nil && bytes.Equal(row, out.key) {
				records = append(records, rec)
			}
		}
		if extra := len(records) - first - most; extra > 0 {
			records, out.More = slices.Delete(records, first, first+extra), true
		}
	}
	return records, nil
}
