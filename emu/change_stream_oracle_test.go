package emu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
)

// changeRecord is a record that a reader has merged from messages.
type changeRecord struct {
	kind      btpb.ReadChangeStreamResponse_DataChange_Type
	row       string
	cluster   string
	micros    int64
	muts      []*btpb.Mutation
	token     string
	watermark int64
	messages  int
}

// text returns the record without its times.
func (r *changeRecord) text() string {
	var b strings.Builder
	b.WriteString(r.row)
	if r.kind == btpb.ReadChangeStreamResponse_DataChange_GARBAGE_COLLECTION {
		b.WriteString(" gc")
	}
	for _, m := range r.muts {
		switch k := m.GetMutation().(type) {
		case *btpb.Mutation_SetCell_:
			fmt.Fprintf(&b, " set %s:%s@%d=%s", k.SetCell.GetFamilyName(), k.SetCell.GetColumnQualifier(), k.SetCell.GetTimestampMicros(), k.SetCell.GetValue())
		case *btpb.Mutation_DeleteFromColumn_:
			fmt.Fprintf(&b, " delete %s:%s[%d,%d)", k.DeleteFromColumn.GetFamilyName(), k.DeleteFromColumn.GetColumnQualifier(),
				k.DeleteFromColumn.GetTimeRange().GetStartTimestampMicros(), k.DeleteFromColumn.GetTimeRange().GetEndTimestampMicros())
		case *btpb.Mutation_DeleteFromFamily_:
			fmt.Fprintf(&b, " delete %s", k.DeleteFromFamily.GetFamilyName())
		case *btpb.Mutation_AddToCell_:
			fmt.Fprintf(&b, " add %s:%s@%d+%d", k.AddToCell.GetFamilyName(), k.AddToCell.GetColumnQualifier().GetRawValue(),
				k.AddToCell.GetTimestamp().GetRawTimestampMicros(), k.AddToCell.GetInput().GetIntValue())
		case *btpb.Mutation_MergeToCell_:
			fmt.Fprintf(&b, " merge %s", k.MergeToCell.GetFamilyName())
		}
	}
	return b.String()
}

// changeReader reads a stream like the official Java reader, and fails where that reader
// throws.
type changeReader struct {
	t      *testing.T
	stream btpb.Bigtable_ReadChangeStreamClient
	cancel context.CancelFunc
	asked  *btpb.StreamPartition

	record *changeRecord // the incomplete record
	pieces int           // received bytes of the incomplete value
	total  int32         // size of that value; 0 without one
	low    int64         // the watermark
}

// changes starts a reader; cancel stops it.
func (e *env) changes(req *btpb.ReadChangeStreamRequest) *changeReader {
	e.t.Helper()
	if req.TableName == "" {
		req.TableName = testTable
	}
	ctx, cancel := context.WithCancel(e.ctx())
	e.t.Cleanup(cancel)
	stream, err := e.data.ReadChangeStream(ctx, req)
	if err != nil {
		e.t.Fatal(err)
	}
	return &changeReader{t: e.t, stream: stream, cancel: cancel, asked: req.GetPartition()}
}

// next returns the next record or heartbeat, or the end of the stream.
func (r *changeReader) next() (*changeRecord, *btpb.ReadChangeStreamResponse_Heartbeat, *btpb.ReadChangeStreamResponse_CloseStream, error) {
	r.t.Helper()
	for {
		resp, err := r.stream.Recv()
		if err != nil {
			if r.record != nil && errors.Is(err, io.EOF) {
				r.t.Error("the stream ends within a record")
			}
			return nil, nil, nil, err
		}
		if n := proto.Size(resp); n >= 1<<20 {
			r.t.Errorf("a message of %d bytes", n)
		}
		switch k := resp.GetStreamRecord().(type) {
		case *btpb.ReadChangeStreamResponse_DataChange_:
			if done := r.change(k.DataChange); done != nil {
				return done, nil, nil, nil
			}
		case *btpb.ReadChangeStreamResponse_Heartbeat_:
			if r.record != nil {
				r.t.Error("a heartbeat within a record")
			}
			r.watermark(k.Heartbeat.GetEstimatedLowWatermark())
			if r.asked != nil && !proto.Equal(k.Heartbeat.GetContinuationToken().GetPartition(), r.asked) || k.Heartbeat.GetContinuationToken().GetToken() == "" {
				r.t.Errorf("heartbeat %v", k.Heartbeat)
			}
			return nil, k.Heartbeat, nil, nil
		case *btpb.ReadChangeStreamResponse_CloseStream_:
			c := k.CloseStream
			ok := c.GetStatus().GetCode() == 0
			if ok != (len(c.GetContinuationTokens()) == 0) || len(c.GetNewPartitions()) != 0 && len(c.GetNewPartitions()) != len(c.GetContinuationTokens()) || r.record != nil {
				r.t.Errorf("close stream %v", c)
			}
			if _, err := r.stream.Recv(); !errors.Is(err, io.EOF) {
				r.t.Errorf("after the close: %v", err)
			}
			return nil, nil, c, nil
		default:
			r.t.Errorf("message %v", resp)
		}
	}
}

func (r *changeReader) watermark(w *timestamppb.Timestamp) {
	micros := w.AsTime().UnixMicro()
	if w == nil || micros < r.low {
		r.t.Errorf("the low watermark %d follows %d", micros, r.low)
	}
	r.low = micros
}

// change adds a message to a record, and returns the complete record.
func (r *changeReader) change(m *btpb.ReadChangeStreamResponse_DataChange) *changeRecord {
	r.t.Helper()
	user := m.GetType() == btpb.ReadChangeStreamResponse_DataChange_USER
	if r.record == nil {
		if !user && m.GetType() != btpb.ReadChangeStreamResponse_DataChange_GARBAGE_COLLECTION || len(m.GetRowKey()) == 0 ||
			m.GetCommitTimestamp() == nil || len(m.GetChunks()) == 0 || user != (m.GetSourceClusterId() != "") {
			r.t.Errorf("the first message of a record is %.300v", m)
		}
		// Tests name clusters c1, c2, …
		if n, err := strconv.Atoi(strings.TrimPrefix(m.GetSourceClusterId(), "c")); err == nil && m.GetTiebreaker() != int32(n-1) {
			r.t.Errorf("the tiebreaker of %s is %d", m.GetSourceClusterId(), m.GetTiebreaker())
		}
		r.record = &changeRecord{kind: m.GetType(), row: string(m.GetRowKey()), cluster: m.GetSourceClusterId(), micros: m.GetCommitTimestamp().AsTime().UnixMicro()}
		if r.record.micros < r.low {
			r.t.Errorf("a record of %d after the low watermark %d", r.record.micros, r.low)
		}
	} else if m.GetType() != btpb.ReadChangeStreamResponse_DataChange_CONTINUATION || m.GetRowKey() != nil || m.GetCommitTimestamp() != nil || m.GetSourceClusterId() != "" {
		r.t.Errorf("a later message of a record is %.300v", m)
	}
	rec := r.record
	rec.messages++
	for i, c := range m.GetChunks() {
		info, set := c.GetChunkInfo(), c.GetMutation().GetSetCell()
		if c.GetMutation().GetDeleteFromRow() != nil || c.GetMutation().GetMutation() == nil {
			r.t.Error("a mutation that Java's reader does not know")
		}
		if info == nil {
			if r.total != 0 {
				r.t.Error("a value that is cut is not ended")
			}
			rec.muts = append(rec.muts, c.GetMutation())
			continue
		}
		switch {
		case set == nil || info.GetChunkedValueSize() <= 0 || int(info.GetChunkedValueOffset()) != r.pieces:
			r.t.Errorf("piece %v of a value of which there are %d bytes", info, r.pieces)
		case info.GetChunkedValueOffset() > 0 && (i != 0 || info.GetChunkedValueSize() != r.total):
			r.t.Errorf("a later piece is chunk %d, of %d bytes and not %d", i, info.GetChunkedValueSize(), r.total)
		case !info.GetLastChunk() && i != len(m.GetChunks())-1:
			r.t.Error("a piece that is not the last is followed by another chunk")
		}
		if info.GetChunkedValueOffset() == 0 {
			rec.muts = append(rec.muts, proto.CloneOf(c.GetMutation()))
			r.total = info.GetChunkedValueSize()
		} else {
			whole := rec.muts[len(rec.muts)-1].GetSetCell()
			whole.Value = append(whole.GetValue(), set.GetValue()...)
		}
		r.pieces += len(set.GetValue())
		if info.GetLastChunk() {
			if r.pieces != int(r.total) {
				r.t.Errorf("a value of %d bytes came with %d", r.total, r.pieces)
			}
			r.pieces, r.total = 0, 0
		}
	}
	if !m.GetDone() {
		if m.GetToken() != "" || m.GetEstimatedLowWatermark() != nil {
			r.t.Error("a token before the last message")
		}
		return nil
	}
	if m.GetToken() == "" || r.total != 0 {
		r.t.Error("a record ends without a token, or within a value")
	}
	r.watermark(m.GetEstimatedLowWatermark())
	rec.token, rec.watermark = m.GetToken(), r.low
	r.record = nil
	return rec
}

// take returns the next n records and skips heartbeats.
func (r *changeReader) take(n int) []*changeRecord {
	r.t.Helper()
	var out []*changeRecord
	for len(out) < n {
		rec, _, closed, err := r.next()
		if err != nil || closed != nil {
			r.t.Fatalf("after %d records: %v, %v", len(out), closed, err)
		}
		if rec != nil {
			out = append(out, rec)
		}
	}
	return out
}

// rest returns the records up to the end of the stream.
func (r *changeReader) rest() ([]*changeRecord, *btpb.ReadChangeStreamResponse_CloseStream) {
	r.t.Helper()
	var out []*changeRecord
	for {
		rec, _, closed, err := r.next()
		if err != nil {
			r.t.Fatalf("after %d records: %v", len(out), err)
		}
		if closed != nil {
			return out, closed
		}
		if rec != nil {
			out = append(out, rec)
		}
	}
}

// wantError checks the immediate error of a stream.
func (r *changeReader) wantError(codes ...string) {
	r.t.Helper()
	_, _, closed, err := r.next()
	for _, c := range codes {
		if closed == nil && err != nil && strings.Contains(err.Error(), c) {
			return
		}
	}
	r.t.Errorf("got %v, %v, want an error of %q", closed, err, codes)
}

func textsOf(recs []*changeRecord) string {
	var b strings.Builder
	for _, r := range recs {
		b.WriteString(r.text() + "\n")
	}
	return b.String()
}

func partition(start, end string) *btpb.StreamPartition {
	return &btpb.StreamPartition{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(start)}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(end)},
	}}
}

func fromTokens(tokens ...*btpb.StreamContinuationToken) *btpb.ReadChangeStreamRequest_ContinuationTokens {
	return &btpb.ReadChangeStreamRequest_ContinuationTokens{ContinuationTokens: &btpb.StreamContinuationTokens{Tokens: tokens}}
}

func fromToken(start, end, token string) *btpb.ReadChangeStreamRequest_ContinuationTokens {
	return fromTokens(&btpb.StreamContinuationToken{Partition: partition(start, end), Token: token})
}

func fromTime(at time.Time) *btpb.ReadChangeStreamRequest_StartTime {
	return &btpb.ReadChangeStreamRequest_StartTime{StartTime: timestamppb.New(at)}
}

// setRetention enables the change stream of table t; 0 disables it.
func (e *env) setRetention(keep time.Duration) {
	e.t.Helper()
	table := &btapb.Table{}
	if keep > 0 {
		table.ChangeStreamConfig = &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(keep)}
	}
	if _, err := e.updateTable(table, "change_stream_config"); err != nil {
		e.t.Fatal(err)
	}
}

// newStream is like newTable, with a change stream.
func newStream(t *testing.T, families ...string) *env {
	t.Helper()
	e := newTable(t, families...)
	e.setRetention(24 * time.Hour)
	return e
}

// until reads the table's changes up to now.
func (e *env) until() []*changeRecord {
	e.t.Helper()
	end := e.clock.Advance(time.Second)
	recs, closed := e.changes(&btpb.ReadChangeStreamRequest{
		Partition: partition("", ""), StartFrom: fromTime(start), EndTime: timestamppb.New(end.Add(-time.Millisecond)),
	}).rest()
	if closed.GetStatus().GetCode() != 0 {
		e.t.Errorf("closed with %v", closed)
	}
	return recs
}

// The partitions of a stream are deleted with its table; a new table of the same name does not
// inherit them.
func TestPartitionsGo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z", 1))
	kept := func() int {
		found, err := e.db.Resources(admin.KindPartitions)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	leave := func() {
		e.createTable("t", "f")
		e.setRetention(24 * time.Hour)
		if err := e.srv.SplitPartition(e.ctx(), testTable, []byte("m")); err != nil {
			t.Fatal(err)
		}
		e.setRetention(0)
		if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if n := kept(); n != 1 {
		t.Fatalf("%d resources, want one of partitions", n)
	}
	e.createTable("t", "f")
	if n := kept(); n != 0 {
		t.Errorf("a table of the name has %d resources of partitions", n)
	}
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance}); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != 0 {
		t.Errorf("a deleted instance leaves %d resources of partitions", n)
	}
}
