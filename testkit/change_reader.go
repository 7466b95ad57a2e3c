package testkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/engine"
)

const (
	// changesDeadline is how long a ChangeReader waits for an answer: an environment
	// that hangs fails its test, with the reason.
	changesDeadline = time.Minute
	// retentionSlack is how long before records are hidden they are no longer asked
	// for: the clock goes on until the server looks at it.
	retentionSlack = time.Second
)

// ChangesOption changes what [Env.Changes] and [Env.ReadChanges] return.
type ChangesOption func(*ChangeReader)

// WithBookkeeping also returns what the DynamoDB door keeps for itself in the rows
// of its tables: the families _f, _t and _x.
func WithBookkeeping() ChangesOption { return func(r *ChangeReader) { r.bookkeeping = true } }

// ChangeReader reads the change stream of a table, each record once. It holds
// nothing between two calls and needs no end. It is for one goroutine.
type ChangeReader struct {
	env         *Env
	tb          testing.TB
	table       string
	bookkeeping bool
	since       time.Time // records from here on were not read yet
	read        []Change  // and not returned yet
}

// ReadChanges returns a reader of the change stream of a Bigtable table of the
// environment's instance, for the test tb. It begins with the first record that is
// kept; see [Env.Changes] for what it returns.
func (e *Env) ReadChanges(tb testing.TB, table string, opts ...ChangesOption) *ChangeReader {
	tb.Helper()
	r := &ChangeReader{env: e, tb: tb, table: table}
	for _, o := range opts {
		o(r)
	}
	return r
}

// Rest returns the records that were not returned yet of all writes that were
// acknowledged before the call, by commit time. It waits for none.
func (r *ChangeReader) Rest() []Change {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(lab.Probe(r.tb.Context()), changesDeadline)
	defer cancel()
	if err := r.fill(ctx); err != nil {
		r.tb.Fatalf("testkit: changes of table %s: %v", r.table, err)
	}
	out := r.read
	r.read = nil
	return out
}

// Next returns the next record, by commit time, and waits for one if there is none.
// After a minute without one it fails the test.
func (r *ChangeReader) Next() Change {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(lab.Probe(r.tb.Context()), changesDeadline)
	defer cancel()
	var err error
	for len(r.read) == 0 && err == nil {
		if err = r.fill(ctx); err == nil && len(r.read) == 0 {
			err = r.wait(ctx)
		}
	}
	if err != nil {
		r.tb.Fatalf("testkit: next change of table %s: %v", r.table, err)
	}
	next := r.read[0]
	r.read = r.read[1:]
	return next
}

// begin returns the time from which records are asked for.
func (r *ChangeReader) begin(ctx context.Context) (time.Time, error) {
	table, err := btapb.NewBigtableTableAdminClient(r.env.Conn()).GetTable(ctx, &btapb.GetTableRequest{Name: r.env.lab.TableName(r.table), View: btapb.Table_FULL})
	if err != nil {
		return time.Time{}, err
	}
	keep := table.GetChangeStreamConfig().GetRetentionPeriod().AsDuration()
	if keep == 0 {
		return time.Time{}, errors.New("it has no change stream: create it with bigtable.TableConf.ChangeStreamRetention, or enable one with AdminClient.UpdateTableWithChangeStream")
	}
	if kept := r.env.Now().Add(retentionSlack - keep); kept.After(r.since) {
		return kept, nil
	}
	return r.since, nil
}

// fill reads what was acknowledged by now.
func (r *ChangeReader) fill(ctx context.Context) error {
	from, err := r.begin(ctx)
	if err != nil {
		return err
	}
	until, err := r.present(ctx)
	if err != nil {
		return err
	}
	if until < from.UnixMicro() {
		return nil
	}
	got, err := r.readUntil(ctx, from, time.UnixMicro(until))
	if err != nil {
		return err
	}
	slices.SortFunc(got, func(a, b Change) int { return a.CommitTime.Compare(b.CommitTime) })
	r.read = append(r.read, got...)
	r.since = time.UnixMicro(until + 1)
	return nil
}

// present returns a commit time that no write is later than which was acknowledged by
// now. All writes up to it are done, so that a stream until then ends at once.
func (r *ChangeReader) present(ctx context.Context) (micros int64, err error) {
	for first := true; err == nil; first = false {
		at, endErr := r.env.lab.DB().JournalEnd(r.env.lab.TableName(r.table), engine.JournalStream)
		if endErr != nil {
			return 0, endErr
		}
		if first {
			micros = at.Latest
			if micros == at.Micros { // nothing is under way
				micros--
			}
		}
		if at.Micros > micros {
			return micros, nil
		}
		runtime.Gosched() // a commit is under way
		err = ctx.Err()
	}
	return 0, err
}

// changePiece is a part of the keys, and how far it was read.
type changePiece struct {
	ChangePartition
	token string // "" for from the beginning
	done  bool   // it was read to its end
}

// within returns what pieces, which are sorted, say of a part of the keys.
func within(pieces []changePiece, part ChangePartition) []changePiece {
	var out []changePiece
	for _, p := range pieces {
		p.Start = max(p.Start, part.Start)
		if p.End == "" || part.End != "" && part.End < p.End {
			p.End = part.End
		}
		if p.End == "" || p.Start < p.End {
			out = append(out, p)
		}
	}
	return out
}

// readUntil reads the records from a time until another one. Partitions may change
// on the way: what was read of which keys is put together for those that there are.
func (r *ChangeReader) readUntil(ctx context.Context, from, until time.Time) ([]Change, error) {
	var out []Change
	pieces := []changePiece{{}}
	for slices.ContainsFunc(pieces, func(p changePiece) bool { return !p.done }) {
		partitions, err := r.partitions(ctx)
		if err != nil {
			return nil, err
		}
		var next []changePiece
		for _, part := range partitions {
			in := within(pieces, part)
			read := func(of ChangePartition, pieces ...changePiece) error {
				got, then, err := r.readPartition(ctx, of, pieces, from, until)
				out, next = append(out, got...), append(next, then...)
				return err
			}
			fresh, done := 0, 0
			for _, p := range in {
				if p.token == "" {
					fresh++
				}
				if p.done {
					done++
				}
			}
			switch {
			case done == len(in):
				next = append(next, in...)
			case fresh == 0 || fresh == len(in):
				err = read(part, in...)
			default:
				// A request has tokens or a time: what has no token gets one, since
				// it is no partition.
				for _, p := range in {
					if p.token != "" {
						next = append(next, p)
					} else if err == nil {
						err = read(p.ChangePartition, p)
					}
				}
			}
			if err != nil {
				return nil, err
			}
		}
		pieces = next
	}
	return out, nil
}

// partitions returns the partitions of the stream.
func (r *ChangeReader) partitions(ctx context.Context) ([]ChangePartition, error) {
	stream, err := btpb.NewBigtableClient(r.env.Conn()).GenerateInitialChangeStreamPartitions(ctx,
		&btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: r.env.lab.TableName(r.table)})
	if err != nil {
		return nil, err
	}
	var out []ChangePartition
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, ofPartition(resp.GetPartition()))
	}
}

func ofPartition(p *btpb.StreamPartition) ChangePartition {
	return ChangePartition{Start: string(p.GetRowRange().GetStartKeyClosed()), End: string(p.GetRowRange().GetEndKeyOpen())}
}

func (p ChangePartition) proto() *btpb.StreamPartition {
	return &btpb.StreamPartition{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(p.Start)}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(p.End)},
	}}
}

// readPartition reads a partition, of which pieces were read, and returns what is read of
// it then.
func (r *ChangeReader) readPartition(ctx context.Context, of ChangePartition, pieces []changePiece, from, until time.Time) ([]Change, []changePiece, error) {
	req := &btpb.ReadChangeStreamRequest{TableName: r.env.lab.TableName(r.table), Partition: of.proto(), EndTime: timestamppb.New(until)}
	if pieces[0].token == "" {
		req.StartFrom = &btpb.ReadChangeStreamRequest_StartTime{StartTime: timestamppb.New(from)}
	} else {
		tokens := &btpb.StreamContinuationTokens{}
		for _, p := range pieces {
			tokens.Tokens = append(tokens.Tokens, &btpb.StreamContinuationToken{Partition: p.proto(), Token: p.token})
		}
		req.StartFrom = &btpb.ReadChangeStreamRequest_ContinuationTokens{ContinuationTokens: tokens}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := btpb.NewBigtableClient(r.env.Conn()).ReadChangeStream(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	var out []Change
	var current *Change
	for {
		resp, err := stream.Recv()
		if err != nil {
			return nil, nil, err
		}
		switch k := resp.GetStreamRecord().(type) {
		case *btpb.ReadChangeStreamResponse_DataChange_:
			if current, err = addToChange(current, k.DataChange); err != nil {
				return nil, nil, err
			}
			if !k.DataChange.GetDone() {
				continue
			}
			current.Partition = of
			pieces = []changePiece{{ChangePartition: of, token: current.Token}}
			if r.show(current) {
				out = append(out, *current)
			}
			current = nil
		case *btpb.ReadChangeStreamResponse_CloseStream_:
			return out, afterClose(pieces, k.CloseStream), nil
		}
	}
}

// afterClose returns how far pieces were read when their stream was closed.
func afterClose(pieces []changePiece, c *btpb.ReadChangeStreamResponse_CloseStream) []changePiece {
	if codes.Code(c.GetStatus().GetCode()) == codes.OK {
		for i := range pieces {
			pieces[i].done = true
		}
		return pieces
	}
	pieces = nil
	for _, t := range c.GetContinuationTokens() {
		pieces = append(pieces, changePiece{ChangePartition: ofPartition(t.GetPartition()), token: t.GetToken()})
	}
	return pieces
}

// addToChange adds a message to the record that it is of: c, or another one if that is
// nil.
func addToChange(c *Change, m *btpb.ReadChangeStreamResponse_DataChange) (*Change, error) {
	if c == nil {
		c = &Change{
			Row: string(m.GetRowKey()), CommitTime: m.GetCommitTimestamp().AsTime(), Cluster: m.GetSourceClusterId(), Tiebreaker: m.GetTiebreaker(),
			GC: m.GetType() == btpb.ReadChangeStreamResponse_DataChange_GARBAGE_COLLECTION,
		}
	}
	c.Token = m.GetToken()
	for _, chunk := range m.GetChunks() {
		if chunk.GetChunkInfo().GetChunkedValueOffset() > 0 { // the value goes on
			last := &c.Entries[len(c.Entries)-1]
			last.Value = append(last.Value, chunk.GetMutation().GetSetCell().GetValue()...)
			continue
		}
		entry, err := decodeEntry(chunk.GetMutation())
		if err != nil {
			return nil, err
		}
		c.Entries = append(c.Entries, entry)
	}
	return c, nil
}

// show takes away what is not to be shown of a record, and tells whether anything
// is left.
func (r *ChangeReader) show(c *Change) bool {
	if !r.bookkeeping {
		c.Entries = slices.DeleteFunc(c.Entries, func(e ChangeEntry) bool { return bookkeeping(e.Family) })
	}
	return len(c.Entries) > 0
}

// wait waits until there is a record that was not read, or a change of partitions.
func (r *ChangeReader) wait(ctx context.Context) error {
	partitions, err := r.partitions(ctx)
	if err != nil {
		return err
	}
	from, err := r.begin(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	first := make(chan error, len(partitions))
	for _, p := range partitions {
		waiting.Go(func() { first <- r.waitIn(ctx, p, from) })
	}
	return <-first
}

// waitIn waits for anything but a heartbeat in a partition.
func (r *ChangeReader) waitIn(ctx context.Context, p ChangePartition, from time.Time) error {
	stream, err := btpb.NewBigtableClient(r.env.Conn()).ReadChangeStream(ctx, &btpb.ReadChangeStreamRequest{
		TableName: r.env.lab.TableName(r.table), Partition: p.proto(), StartFrom: &btpb.ReadChangeStreamRequest_StartTime{StartTime: timestamppb.New(from)},
	})
	for beat := true; beat && err == nil; {
		var resp *btpb.ReadChangeStreamResponse
		resp, err = stream.Recv()
		_, beat = resp.GetStreamRecord().(*btpb.ReadChangeStreamResponse_Heartbeat_)
	}
	if err != nil {
		return cmp.Or(context.Cause(ctx), fmt.Errorf("waiting: %w", err))
	}
	return nil
}
