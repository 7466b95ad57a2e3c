package run

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Stream is what a load does with rows once they are laid out: it gathers them into
// calls, at the pace of the options, and sends again what may pass. Who has no items, but
// wants to know what a load does to a Bigtable, drives it as [Job] does: it adds rows,
// and flushes whenever the stream is full, and at the end.
type Stream struct{ w writer }

// NewStream is a stream to one table. found says that the table was there before: what it
// holds is read, and not written again. untried says that another part made it, so that where
// the first batch finds nothing, no other is read.
func NewStream(b *Bigtable, o Options, table string, found, untried bool) *Stream {
	return &Stream{writer{B: b, J: &Job{Options: o.Normalized()}, tables: []writeTable{{ID: table, found: found, untried: untried}}}}
}

// Full reports whether what was added is a batch.
func (s *Stream) Full() bool { return s.w.full() }

// Add queues a row, which is the stream's until the next Flush, and is taken for one of so
// many bytes.
func (s *Stream) Add(row *btpb.MutateRowsRequest_Entry, size int) {
	s.w.queue(0, writeEntry{MutateRowsRequest_Entry: row}, size)
}

// Flush sends what was added. A row that is refused for good is an error.
func (s *Stream) Flush(ctx context.Context) error {
	_, _, err := s.w.flush(ctx)
	return err
}
