package load

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// Stream writes rows as a load does: it gathers them into calls, keeps the pace of the options,
// and retries. The caller adds rows, and flushes when the stream is full, and at the end.
type Stream struct{ w writer }

// NewStream returns a stream to the table id. found means that the table existed before: rows
// it already has are not written again. untried means that another part created it: if the
// first batch finds nothing, later batches are not looked up.
func NewStream(b *table.Bigtable, o table.Options, id string, found, untried bool) *Stream {
	return &Stream{writer{b: b, o: o.Normalized(), tables: []writeTable{{ID: id, found: found, untried: untried}}}}
}

// Full reports whether the added rows make a batch.
func (s *Stream) Full() bool { return s.w.full() }

// Add queues a row of size bytes. The stream owns the row until the next Flush.
func (s *Stream) Add(row *btpb.MutateRowsRequest_Entry, size int) {
	s.w.queue(0, writeEntry{MutateRowsRequest_Entry: row}, size)
}

// Flush sends the queued rows. A row that is refused permanently is an error.
func (s *Stream) Flush(ctx context.Context) error {
	_, _, err := s.w.flush(ctx)
	return err
}
