package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab/changestream"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

const (
	// maxShownValue is the shown size of a written value, in bytes.
	maxShownValue = 64 << 10
	// maxListed limits the listed streams.
	maxListed = 1000
)

// streams reads the changes of tables from both endpoints: DynamoDB's streams and Bigtable's
// change streams.
type streams struct{ *Server }

// changeStream is a Bigtable table with a change stream.
type changeStream struct {
	Name      string   `json:"name"` // its resource name
	Instance  string   `json:"instance"`
	Table     string   `json:"table"`
	Retention string   `json:"retention"`
	DynamoDB  []string `json:"dynamodb,omitempty"` // the tables whose items are stored in its rows
}

// dynamoDBStream is a stream of a DynamoDB table.
type dynamoDBStream struct {
	Table  string `json:"table"`
	ARN    string `json:"arn"`
	Label  string `json:"label"`
	View   string `json:"view"`
	Status string `json:"status"`
	Latest bool   `json:"latest"` // the latest stream of the table
	// Instance and Over name the Bigtable table with the items.
	Instance string `json:"instance,omitempty"`
	Over     string `json:"over,omitempty"`
}

// list returns the readable streams.
func (s streams) list(r *http.Request) (any, error) {
	out := struct {
		Bigtable []changeStream   `json:"bigtable"`
		DynamoDB []dynamoDBStream `json:"dynamodb"`
		More     bool             `json:"more,omitempty"`
	}{Bigtable: []changeStream{}, DynamoDB: []dynamoDBStream{}}
	names, err := s.dynamoDBTables(own(r))
	if err != nil {
		return nil, err
	}
	over := map[string]string{} // DynamoDB table to Bigtable table
	for _, name := range names {
		if m, err := s.opts.Endpoint.Mapping(own(r), name); err == nil {
			over[name] = m.TargetTable()
		}
	}
	for _, t := range s.opts.Lab.DB().Tables("") {
		keep := t.Journal[engine.JournalStream].Keep
		if keep == 0 {
			continue
		}
		if len(out.Bigtable) == maxListed {
			out.More = true
			break
		}
		instance, id := ids(t.Name)
		c := changeStream{Name: t.Name, Instance: instance, Table: id, Retention: keep.String()}
		for _, name := range names {
			if over[name] == id && t.Name == s.opts.Lab.TableName(id) {
				c.DynamoDB = append(c.DynamoDB, name)
			}
		}
		out.Bigtable = append(out.Bigtable, c)
	}
	found, more, err := s.described(own(r))
	if err != nil {
		return nil, err
	}
	for i := range found {
		if id := over[found[i].Table]; id != "" {
			found[i].Instance, found[i].Over = s.opts.Lab.Options().Instance, id
		}
	}
	out.DynamoDB, out.More = append(out.DynamoDB, found...), out.More || more
	return out, nil
}

// ask runs an operation of the endpoint.
func (s streams) ask(ctx context.Context, operation string, request map[string]any, answer any) error {
	text, err := json.Marshal(request)
	if err == nil {
		text, err = s.opts.Endpoint.Call(ctx, operation, text)
	}
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}

// described returns the streams of the endpoint: none if it is closed.
func (s streams) described(ctx context.Context) (found []dynamoDBStream, more bool, err error) {
	latest := map[string]string{} // the ARN of the latest stream of a table
	for request := map[string]any{}; ; {
		var page struct {
			Streams []struct {
				StreamARN   string `json:"StreamArn"`
				StreamLabel string
				TableName   string
			}
			LastEvaluatedStreamARN string `json:"LastEvaluatedStreamArn"`
		}
		switch err := s.ask(ctx, "ListStreams", request, &page); {
		case errors.Is(err, dynamodb.ErrClosed):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		}
		for _, at := range page.Streams {
			if len(found) == maxListed {
				return found, true, nil
			}
			var d struct {
				StreamDescription struct{ StreamStatus, StreamViewType string }
			}
			if err := s.ask(ctx, "DescribeStream", map[string]any{"StreamArn": at.StreamARN, "Limit": 1}, &d); err != nil {
				return nil, false, err
			}
			if _, ok := latest[at.TableName]; !ok {
				// A deleted table has none.
				latest[at.TableName], _ = s.latest(ctx, at.TableName)
			}
			found = append(found, dynamoDBStream{
				Table: at.TableName, ARN: at.StreamARN, Label: at.StreamLabel, Latest: latest[at.TableName] == at.StreamARN,
				View: d.StreamDescription.StreamViewType, Status: d.StreamDescription.StreamStatus,
			})
		}
		if page.LastEvaluatedStreamARN == "" {
			return found, false, nil
		}
		request["ExclusiveStartStreamArn"] = page.LastEvaluatedStreamARN
	}
}

// latest returns the ARN of the latest stream of a table. It returns an [*Error] with the
// code no_stream if the table never had a stream.
func (s streams) latest(ctx context.Context, table string) (string, error) {
	var d struct {
		Table struct {
			LatestStreamARN string `json:"LatestStreamArn"`
		}
	}
	if err := s.ask(ctx, "DescribeTable", map[string]any{"TableName": table}, &d); err != nil {
		return "", err
	}
	if d.Table.LatestStreamARN == "" {
		return "", &Error{http.StatusConflict, "no_stream", "table " + table + " has no stream", "turn one on: UpdateTable with StreamSpecification {\"StreamEnabled\":true,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}"}
	}
	return d.Table.LatestStreamARN, nil
}

// page is the requested part of a stream: at most `most` records after cursor or, without a
// cursor, from a time on.
type page struct {
	most   int
	cursor string
	from   time.Time // without a cursor; the zero time is the beginning
}

func pageOf(r *http.Request) (p page, err error) {
	q := r.URL.Query()
	if p.most, err = limit(q, defaultRows); err != nil {
		return p, err
	}
	p.cursor = q.Get("cursor")
	if q.Has("from") && p.cursor == "" {
		if p.from, err = time.Parse(time.RFC3339Nano, q.Get("from")); err != nil {
			return p, badRequest("from is %q, want a time such as 2030-01-01T00:00:00Z", q.Get("from"))
		}
	}
	return p, nil
}

// part is a page of a stream. Cursor is set if more records exist already; Next always has the
// position to continue from.
type part struct {
	Cursor string `json:"cursor,omitempty"`
	Next   string `json:"next"`
}

func partUntil(next string, more bool) part {
	if more {
		return part{next, next}
	}
	return part{Next: next}
}

// rowChange is a record of a change stream.
type rowChange struct {
	Key     Bytes     `json:"key"`
	Parts   []keyPart `json:"parts,omitempty"`
	Time    time.Time `json:"time"`
	GC      bool      `json:"gc,omitempty"` // a change by garbage collection instead of a caller
	Cluster string    `json:"cluster,omitempty"`
	Entries []entry   `json:"entries"`
	// Record is the sequence number of the DynamoDB Streams record of the same write.
	Record string `json:"record,omitempty"`
}

// entry is a mutation of a rowChange. Times are in microseconds.
type entry struct {
	Kind      string `json:"kind"` // SetCell, DeleteCells, DeleteFamily, AddToCell or MergeToCell
	Family    string `json:"family"`
	Qualifier *Bytes `json:"qualifier,omitempty"` // of all but DeleteFamily
	Timestamp int64  `json:"timestamp,omitempty"`
	Value     *Bytes `json:"value,omitempty"` // at most 64 KiB of it
	Bytes     int    `json:"bytes,omitempty"` // size of a longer value
	Input     int64  `json:"input,omitempty"` // of AddToCell
	Start     int64  `json:"start,omitempty"` // of DeleteCells, with End; both 0 for all cells of the column
	End       int64  `json:"end,omitempty"`
}

func entryOf(e *changestream.Entry) entry {
	out := entry{Kind: e.Kind.String(), Family: e.Family, Timestamp: e.Timestamp, Input: e.Input, Start: e.Start, End: e.End}
	if e.Kind != changestream.DeleteFamily {
		qualifier := bytesOf([]byte(e.Column))
		out.Qualifier = &qualifier
	}
	if e.Kind == changestream.SetCell || e.Kind == changestream.MergeToCell {
		shown := e.Value
		if len(shown) > maxShownValue {
			shown, out.Bytes = shown[:maxShownValue], len(e.Value)
		}
		value := bytesOf(shown)
		out.Value = &value
	}
	return out
}

// changes returns the records of the change stream of a Bigtable table.
func (s streams) changes(r *http.Request) (any, error) {
	table := s.tableName(r)
	if _, err := s.opts.Lab.DB().Table(table); err != nil {
		return nil, noTable(own(r), s.Server, table)
	}
	p, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	if p.cursor != "" {
		micros, err := strconv.ParseInt(p.cursor, 10, 64)
		if err != nil {
			return nil, badRequest("cursor was not returned by an earlier response")
		}
		p.from = time.UnixMicro(micros)
	}
	mappings, err := s.mappingsOver(r)
	if err != nil {
		return nil, err
	}
	reader := changestream.Reader{Lab: s.opts.Lab, Table: table, Most: p.most, Bytes: maxPageBytes}
	got, next, more, err := reader.Read(own(r), p.from)
	if errors.Is(err, changestream.ErrNoStream) {
		return nil, &Error{http.StatusConflict, "no_stream", "table " + table + " has no change stream", "turn one on: UpdateTable of Bigtable's administration with a change_stream_config of 1 to 7 days, as AdminClient.UpdateTableWithChangeStream does"}
	}
	if err != nil {
		return nil, err
	}
	bookkeeping, err := yes(r.URL.Query(), "bookkeeping", false)
	if err != nil {
		return nil, err
	}
	out := struct {
		Changes []rowChange `json:"changes"`
		part
	}{[]rowChange{}, partUntil(strconv.FormatInt(next.UnixMicro(), 10), more)}
	for i := range got {
		if c, ok := changeOf(mappings, &got[i], bookkeeping); ok {
			out.Changes = append(out.Changes, c)
		}
	}
	return out, nil
}

// changeOf returns a record in its shown form. ok is false if only bookkeeping changed and was
// not requested.
func changeOf(mappings []*mapping.Mapping, rec *changestream.Record, bookkeeping bool) (c rowChange, ok bool) {
	c = rowChange{Key: bytesOf([]byte(rec.Row)), Time: rec.CommitTime.UTC(), GC: rec.GC, Cluster: rec.Cluster}
	row := btclient.Row{Key: []byte(rec.Row)}
	for i := range rec.Entries {
		e := &rec.Entries[i]
		if e.Kind == changestream.SetCell {
			row.Cells = append(row.Cells, btclient.Cell{Family: e.Family, Qualifier: []byte(e.Column), Timestamp: e.Timestamp, Value: e.Value})
			if sequence, ok := facade.RecordOf(e.Family, []byte(e.Column)); ok {
				c.Record = sequence
			}
		}
	}
	if !bookkeeping && !rec.DropBookkeeping() {
		return c, false
	}
	c.Parts = partsBy(mappings, row)
	c.Entries = make([]entry, len(rec.Entries))
	for i := range rec.Entries {
		c.Entries[i] = entryOf(&rec.Entries[i])
	}
	return c, true
}

// streamRecord is a record of DynamoDB Streams, as the endpoint returns it.
type streamRecord struct {
	json.RawMessage
	sequence string
}

// records returns the records of a stream of a DynamoDB table, the latest stream unless ?arn=
// names another.
func (s streams) records(r *http.Request) (any, error) {
	p, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	after := p.cursor
	if after == "" && !p.from.IsZero() {
		after = facade.SequenceAt(p.from.Add(-1)) // a record may have exactly this time
	}
	arn := r.URL.Query().Get("arn")
	if arn == "" {
		if arn, err = s.latest(own(r), r.PathValue("table")); err != nil {
			return nil, s.naming(r, err)
		}
	}
	out := struct {
		ARN     string            `json:"arn"`
		Records []json.RawMessage `json:"records"`
		part
	}{ARN: arn, Records: []json.RawMessage{}}
	found, more, err := s.read(own(r), arn, after, p.most)
	if err != nil {
		return nil, err
	}
	next := after
	for _, rec := range found {
		out.Records = append(out.Records, rec.RawMessage)
		next = rec.sequence
	}
	out.part = partUntil(next, more)
	return out, nil
}

// shard is a part of a stream. Sequence numbers have an equal length, so they sort as texts.
type shard struct {
	ID    string `json:"ShardId"`
	Range struct {
		First string `json:"StartingSequenceNumber"`
		Last  string `json:"EndingSequenceNumber"` // "" for an open shard
	} `json:"SequenceNumberRange"`
}

// read returns records after a sequence number, from all shards, ordered by sequence number:
// at most `most` records, and about maxPageBytes. more reports whether further records exist.
func (s streams) read(ctx context.Context, arn, after string, most int) (found []streamRecord, more bool, err error) {
	last := "" // records after it are not needed; "" means no limit
	cut := func() {
		slices.SortFunc(found, func(a, b streamRecord) int { return strings.Compare(a.sequence, b.sequence) })
		size := 0
		for i := range found {
			if size += len(found[i].RawMessage); i == most || i > 0 && size > maxPageBytes {
				last = found[i-1].sequence
				clear(found[i:])
				found = found[:i]
				return
			}
		}
	}
	for request := map[string]any{"StreamArn": arn}; ; {
		var d struct {
			StreamDescription struct {
				Shards               []shard
				LastEvaluatedShardID string `json:"LastEvaluatedShardId"`
			}
		}
		if err := s.ask(ctx, "DescribeStream", request, &d); err != nil {
			return nil, false, err
		}
		for _, sh := range d.StreamDescription.Shards {
			if sh.Range.Last != "" && sh.Range.Last <= after || last != "" && sh.Range.First > last {
				continue
			}
			size := 0
			err := s.readShard(ctx, arn, sh, after, func(rec streamRecord) bool {
				if last != "" && rec.sequence > last {
					return false
				}
				found = append(found, rec)
				if size += len(rec.RawMessage); len(found) >= 2*most || size > maxPageBytes {
					cut()
					size = 0
				}
				return true
			})
			if err != nil {
				return nil, false, err
			}
			cut()
		}
		if d.StreamDescription.LastEvaluatedShardID == "" {
			return found, last != "", nil
		}
		request["ExclusiveStartShardId"] = d.StreamDescription.LastEvaluatedShardID
	}
}

// readShard passes the records of a shard after a sequence number to take, until it returns
// false.
func (s streams) readShard(ctx context.Context, arn string, sh shard, after string, take func(streamRecord) bool) error {
	var at struct{ ShardIterator string }
	request := map[string]any{"StreamArn": arn, "ShardId": sh.ID, "ShardIteratorType": "TRIM_HORIZON"}
	var err error
	if after >= sh.Range.First {
		numbered := map[string]any{"StreamArn": arn, "ShardId": sh.ID, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
		err = s.ask(ctx, "GetShardIterator", numbered, &at)
	}
	if isTrimmed(err) || at.ShardIterator == "" && err == nil {
		err = s.ask(ctx, "GetShardIterator", request, &at)
	}
	for err == nil && at.ShardIterator != "" {
		var page struct {
			Records           []json.RawMessage
			NextShardIterator string
		}
		if err = s.ask(ctx, "GetRecords", map[string]any{"ShardIterator": at.ShardIterator}, &page); err != nil || len(page.Records) == 0 {
			break
		}
		for _, text := range page.Records {
			var rec struct {
				DynamoDB struct{ SequenceNumber string } `json:"dynamodb"`
			}
			if err := json.Unmarshal(text, &rec); err != nil {
				return err
			}
			if !take(streamRecord{text, rec.DynamoDB.SequenceNumber}) {
				return nil
			}
		}
		at.ShardIterator = page.NextShardIterator
	}
	return err
}

// isTrimmed reports whether requested records are no longer retained.
func isTrimmed(err error) bool {
	e, ok := awserr.As(err)
	return ok && strings.HasSuffix(e.Code, awserr.CodeTrimmedData)
}
