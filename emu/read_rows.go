package emu

import (
	"bytes"
	"context"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/metadata"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/rowchunks"
	"github.com/tabletop-emu/tabletop/engine"
)

// scannedPerMessage is the number of filtered-out rows and cells after which ReadRows sends
// last_scanned_row_key.
const scannedPerMessage = 10_000

// ReadRows streams the rows of a set through a filter, in key order or in reverse. It reads the
// rows in their state at the beginning of the call. rows_limit limits the number of rows that pass
// the filter.
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#google.bigtable.v2.Bigtable.ReadRows
func (c *call) ReadRows(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) error {
	err := c.readRows(req, stream)
	c.read.End(c.load(stream.Context(), req, err), req, err)
	return err
}

func (c *call) readRows(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) error {
	ctx := stream.Context()
	began := c.now()
	t, err := c.readTarget(ctx, req.GetTableName(), req.GetAuthorizedViewName(), req.GetMaterializedViewName())
	if err != nil {
		return err
	}
	does := reads
	if req.GetReversed() {
		does = readsReversed
	}
	if err := c.admit(req, t.resource(), req.GetAppProfileId(), does); err != nil {
		return err
	}
	c.read.Begin(c.load(ctx, req, nil))
	rows, err := c.rowSet(req.GetRows())
	if err != nil {
		return err
	}
	if req.GetRowsLimit() < 0 {
		return refusal.Invalid("rows_limit", "%d is negative", req.GetRowsLimit())
	}
	if req.GetReversed() && !c.clientFeatures(ctx).GetReverseScans() {
		return refusal.NoReverseScans()
	}
	program, err := c.compileFilter("filter", t.Table, req.GetFilter())
	if err != nil {
		return err
	}
	if err := t.checkFamily(program); err != nil {
		return err
	}
	r := c.newReader()
	r.stream, r.program, r.limit, r.out.RowLimitBytes = stream, program, req.GetRowsLimit(), c.rowLimitBytes()
	if c.sink != nil {
		r.out.Rows, r.out.SendRows = c.sink, c.sendsRows
	} else {
		r.out.Send, r.out.SendCopies = stream.Send, c.method.described && c.wireCopies
		r.out.WholeRows = func() bool { return wantsWholeRows(ctx) }
	}
	var some bool
	if r.spans, some = engineSpans(r.spans, t.rows(rows).Intersect(program.Rows())); some {
		scan, err := c.scan(ctx, t, c.at, engine.ScanOptions{Spans: r.spans, Reverse: req.GetReversed()})
		if err != nil {
			return refusal.Of(err)
		}
		err = r.read(ctx, t, scan)
		if closeErr := scan.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			// A canceled scan ends like a finished one.
			err = ctx.Err()
		}
		if err != nil {
			return refusal.Of(err)
		}
	}
	if err := r.out.Flush(); err != nil {
		return refusal.Of(err)
	}
	if req.GetRequestStatsView() != btpb.ReadRowsRequest_REQUEST_STATS_FULL {
		return nil
	}
	return stream.Send(&btpb.ReadRowsResponse{RequestStats: readStats(&btpb.ReadIterationStats{
		RowsSeenCount: r.rowsSeen, RowsReturnedCount: r.rowsReturned,
		CellsSeenCount: r.cellsSeen, CellsReturnedCount: r.cellsReturned,
	}, c.now().Sub(began))})
}

// readStats returns the request stats of a read that took the given time.
func readStats(counts *btpb.ReadIterationStats, took time.Duration) *btpb.RequestStats {
	return &btpb.RequestStats{StatsView: &btpb.RequestStats_FullReadStatsView{FullReadStatsView: &btpb.FullReadStatsView{
		ReadIterationStats:  counts,
		RequestLatencyStats: &btpb.RequestLatencyStats{FrontendServerLatency: latencyProto(took)},
	}}}
}

// rowLimitBytes returns the size of the largest readable row; 0 for unlimited.
func (s *Server) rowLimitBytes() int {
	if s.limits == limits.Off {
		return 0
	}
	return limits.MaxRowBytes
}

// rowReader moves rows from a scan through a filter to the response.
type rowReader struct {
	c       *call
	stream  btpb.Bigtable_ReadRowsServer
	program *filter.Program
	out     rowchunks.Writer
	add     func(*filter.Cell) error // out.Add
	limit   int64                    // rows; 0 for unlimited
	spans   []engine.Span
	// silent counts the rows and cells read since the last returned or reported row.
	silent int64

	rowsSeen, rowsReturned, cellsSeen, cellsReturned int64
}

// newReader returns the rowReader of the call.
func (c *call) newReader() *rowReader {
	if c.reader == nil {
		c.reader = new(rowReader)
		c.reader.add = c.reader.out.Add
	}
	c.reader.c = c
	return c.reader
}

// release clears a reader for the next call. It is nil if the call has read no rows.
func (r *rowReader) release() {
	if r == nil {
		return
	}
	clear(r.spans)
	r.out.Reset()
	*r = rowReader{out: r.out, add: r.add, spans: r.spans[:0]}
}

func (r *rowReader) read(ctx context.Context, t target, scan replica.Scan) error {
	src, gate, ok := t.cells(scan)
	for ok && scan.NextRow() {
		if gate != nil {
			gate.BeginRow()
		}
		r.out.Begin(scan.Row())
		seen, err := r.program.Run(ctx, scan.Row(), src, r.add)
		if err != nil {
			return err
		}
		if gate == nil || gate.Seen() {
			r.rowsSeen++
		}
		r.cellsSeen += seen
		cells, err := r.out.Commit()
		if err != nil {
			return err
		}
		if cells == 0 {
			if err := r.reportScanned(ctx, scan.Row(), 1+seen); err != nil {
				return err
			}
			continue
		}
		if r.c.sink != nil && r.c.read.Counted() {
			r.c.read.Row(scan.Row(), r.out.RowBytes())
		}
		r.silent = 0
		r.cellsReturned += cells
		r.rowsReturned++
		if r.limit > 0 && r.rowsReturned == r.limit {
			break
		}
		if down := r.c.at.Check(); down != nil {
			if err := r.out.Flush(); err != nil {
				return err
			}
			return down
		}
	}
	return scan.Err()
}

// reportScanned counts a row that the filter removed. After scannedPerMessage removed rows and
// cells, it sends last_scanned_row_key, so that a retry continues after them. work is the number
// of cells in the row, plus 1. It flushes returned rows first: the client treats all rows up to
// the key as delivered.
func (r *rowReader) reportScanned(ctx context.Context, row []byte, work int64) error {
	if r.silent += work; r.silent < scannedPerMessage {
		return nil
	}
	r.silent = 0
	if !r.c.clientFeatures(ctx).GetLastScannedRowResponses() {
		return nil
	}
	if err := r.out.Flush(); err != nil {
		return err
	}
	return r.stream.Send(&btpb.ReadRowsResponse{LastScannedRowKey: bytes.Clone(row)})
}

// clientFeatures returns the decoded feature flags of a client; empty for an invalid header.
// The result is shared.
func (s *Server) clientFeatures(ctx context.Context) *btpb.FeatureFlags {
	for _, v := range metadata.ValueFromIncomingContext(ctx, "bigtable-features") {
		if last := s.features.Load(); last != nil && last.header == v {
			return last.flags
		}
		if flags := clientFeatures(v); flags != nil {
			s.features.Store(&featureHeader{header: v, flags: flags})
			return flags
		}
	}
	return noFeatures
}

// featureHeader is a decoded feature header.
type featureHeader struct {
	header string
	flags  *btpb.FeatureFlags
}

var noFeatures = &btpb.FeatureFlags{}
