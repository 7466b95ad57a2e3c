package changestream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/engine"
)

// retentionSlack is the margin before the end of the retention in which records are not
// requested: the clock continues until the server reads it.
const retentionSlack = time.Second

// ErrNoStream is returned for a table without a change stream.
var ErrNoStream = errors.New("the table has no change stream: create it with bigtable.TableConf.ChangeStreamRetention, or enable the stream with AdminClient.UpdateTableWithChangeStream")

// Reader reads the change stream of a table. It holds no resources between two calls.
type Reader struct {
	Lab *lab.Lab
	// Table is the resource name of the table.
	Table string
	// Most and Bytes are approximate limits of the number and the total size of the records that
	// Read returns; 0 means no limit. Read reads up to these limits from each partition.
	Most, Bytes int
	// Row is the key of the only row whose records Read returns. Default: all rows.
	Row string
}

// Read returns the records of writes that were acknowledged before the call, in order of commit
// time. It starts at the given time; the zero time means the first retained record. next is the
// time from which to continue, and more reports whether further records already exist.
func (r *Reader) Read(ctx context.Context, since time.Time) (records []Record, next time.Time, more bool, err error) {
	from, err := r.Begin(ctx, since)
	if err != nil {
		return nil, since, false, err
	}
	until, err := r.present(ctx)
	if err != nil || until < from.UnixMicro() {
		return nil, since, false, err
	}
	got := gathering{row: r.Row, most: r.Most, bytes: r.Bytes, last: time.UnixMicro(until)}
	if err := r.Deliver(ctx, from, got.last, got.take); err != nil {
		return nil, since, false, err
	}
	got.cut()
	return got.records, got.last.Add(time.Microsecond), got.last.UnixMicro() < until, nil
}

// gathering collects the first delivered records by commit time.
type gathering struct {
	row         string // "": all
	most, bytes int    // 0: no limit
	records     []Record
	size        int
	last        time.Time // later records are not needed
}

// take adds a record, unless it is not needed. It returns false if the later records of the partition
// are not needed either.
func (g *gathering) take(rec *Record) bool {
	if rec.CommitTime.After(g.last) {
		return false
	}
	if g.row != "" && g.row != rec.Row {
		return true
	}
	g.records = append(g.records, *rec)
	g.size += rec.size()
	// Unneeded records are dropped in bulk, so each record is sorted only a few times.
	if g.most > 0 && len(g.records) >= 2*g.most || g.bytes > 0 && g.size >= 2*g.bytes {
		g.cut()
	}
	return true
}

// cut sorts the records and drops those beyond the limits, except that it keeps all records of the first
// commit time. After a drop, g.last is the last kept commit time.
func (g *gathering) cut() {
	slices.SortFunc(g.records, func(a, b Record) int { return a.CommitTime.Compare(b.CommitTime) })
	g.size = 0
	for i := range g.records {
		size := g.size + g.records[i].size()
		full := g.most > 0 && i >= g.most || g.bytes > 0 && size > g.bytes
		if full && i > 0 && g.records[i-1].CommitTime.Before(g.records[i].CommitTime) {
			g.last = g.records[i-1].CommitTime
			clear(g.records[i:])
			g.records = g.records[:i]
			return
		}
		g.size = size
	}
}

// Begin returns the time from which to request the records since a given time. It is the latest of
// that time, the time at which the stream was enabled, and the beginning of the retention period.
func (r *Reader) Begin(ctx context.Context, since time.Time) (time.Time, error) {
	table, err := btapb.NewBigtableTableAdminClient(r.Lab.Bigtable().Conn()).GetTable(ctx, &btapb.GetTableRequest{Name: r.Table, View: btapb.Table_FULL})
	if err != nil {
		return time.Time{}, err
	}
	keep := table.GetChangeStreamConfig().GetRetentionPeriod().AsDuration()
	if keep == 0 {
		return time.Time{}, ErrNoStream
	}
	stored, err := r.Lab.DB().Table(r.Table)
	if err != nil {
		return time.Time{}, err
	}
	from := time.UnixMicro(stored.Journal[engine.JournalStream].Began)
	for _, at := range []time.Time{since, r.Lab.Clock().Now().Add(retentionSlack - keep)} {
		if at.After(from) {
			from = at
		}
	}
	return from, nil
}

// present returns an upper bound for the commit times of writes acknowledged by now. All writes
// up to it are complete, so a stream until then ends at once.
func (r *Reader) present(ctx context.Context) (micros int64, err error) {
	for first := true; err == nil; first = false {
		at, endErr := r.Lab.DB().JournalEnd(r.Table, engine.JournalStream)
		if endErr != nil {
			return 0, endErr
		}
		if !at.Running { // discarded records may be later, and the clock may be stopped
			return at.Micros - 1, nil
		}
		if first {
			micros = at.Latest
		}
		if at.Micros > micros {
			return micros, nil
		}
		runtime.Gosched() // a commit is running
		err = ctx.Err()
	}
	return 0, err
}

// piece is a range of keys with the position of its reader.
type piece struct {
	Partition
	token string // "": from the beginning
	done  bool   // it was read to its end
}

// within returns the parts of the sorted pieces inside a partition.
func within(pieces []piece, part Partition) []piece {
	var out []piece
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

// Deliver calls take with the records of completed writes whose commit times lie between from and
// until. Records come in the order in which streams deliver them; the records of one row are in
// order of commit time. If partitions change meanwhile, Deliver combines the positions in the old
// partitions into positions in the new ones. Once take returns false, it receives no more records
// of that partition.
func (r *Reader) Deliver(ctx context.Context, from, until time.Time, take func(*Record) bool) error {
	pieces := []piece{{}}
	for slices.ContainsFunc(pieces, func(p piece) bool { return !p.done }) {
		partitions, err := r.partitions(ctx)
		if err != nil {
			return err
		}
		var next []piece
		for _, part := range partitions {
			in := within(pieces, part)
			read := func(of Partition, pieces ...piece) error {
				then, err := r.readPartition(ctx, of, pieces, from, until, take)
				next = append(next, then...)
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
				// Either all parts of a request have tokens, or none has. A part without a
				// token is read alone, which gives it a token.
				for _, p := range in {
					if p.token != "" {
						next = append(next, p)
					} else if err == nil {
						err = read(p.Partition, p)
					}
				}
			}
			if err != nil {
				return err
			}
		}
		pieces = next
	}
	return nil
}

// partitions returns the partitions of the stream.
func (r *Reader) partitions(ctx context.Context) ([]Partition, error) {
	stream, err := btpb.NewBigtableClient(r.Lab.Bigtable().Conn()).GenerateInitialChangeStreamPartitions(ctx,
		&btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: r.Table})
	if err != nil {
		return nil, err
	}
	var out []Partition
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

func ofPartition(p *btpb.StreamPartition) Partition {
	return Partition{Start: string(p.GetRowRange().GetStartKeyClosed()), End: string(p.GetRowRange().GetEndKeyOpen())}
}

func (p Partition) proto() *btpb.StreamPartition {
	return &btpb.StreamPartition{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(p.Start)}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(p.End)},
	}}
}

// readPartition continues to read a partition after the given pieces, and returns the
// resulting pieces.
func (r *Reader) readPartition(ctx context.Context, of Partition, pieces []piece, from, until time.Time, take func(*Record) bool) ([]piece, error) {
	req := &btpb.ReadChangeStreamRequest{TableName: r.Table, Partition: of.proto(), EndTime: timestamppb.New(until)}
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
	stream, err := btpb.NewBigtableClient(r.Lab.Bigtable().Conn()).ReadChangeStream(ctx, req)
	if err != nil {
		return nil, err
	}
	var current *Record
	for {
		resp, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		switch k := resp.GetStreamRecord().(type) {
		case *btpb.ReadChangeStreamResponse_DataChange_:
			if current, err = addTo(current, k.DataChange); err != nil {
				return nil, err
			}
			if !k.DataChange.GetDone() {
				continue
			}
			current.Partition = of
			pieces = []piece{{Partition: of, token: current.Token}}
			if !take(current) {
				pieces[0].done = true
				return pieces, nil
			}
			current = nil
		case *btpb.ReadChangeStreamResponse_CloseStream_:
			return afterClose(pieces, k.CloseStream), nil
		}
	}
}

// afterClose returns the positions of pieces after their stream was closed.
func afterClose(pieces []piece, c *btpb.ReadChangeStreamResponse_CloseStream) []piece {
	if codes.Code(c.GetStatus().GetCode()) == codes.OK {
		for i := range pieces {
			pieces[i].done = true
		}
		return pieces
	}
	pieces = nil
	for _, t := range c.GetContinuationTokens() {
		pieces = append(pieces, piece{Partition: ofPartition(t.GetPartition()), token: t.GetToken()})
	}
	return pieces
}

// Wait waits for a record since a given time, or for a change of partitions.
func (r *Reader) Wait(ctx context.Context, since time.Time) error {
	partitions, err := r.partitions(ctx)
	if err != nil {
		return err
	}
	from, err := r.Begin(ctx, since)
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

// waitIn waits until a partition sends a record or ends, and ignores heartbeats.
func (r *Reader) waitIn(ctx context.Context, p Partition, from time.Time) error {
	stream, err := btpb.NewBigtableClient(r.Lab.Bigtable().Conn()).ReadChangeStream(ctx, &btpb.ReadChangeStreamRequest{
		TableName: r.Table, Partition: p.proto(), StartFrom: &btpb.ReadChangeStreamRequest_StartTime{StartTime: timestamppb.New(from)},
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
