package load

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// Stream writes rows in the same way as a load: it batches them into calls, keeps to the
// pace in the options, and retries. The caller adds rows, and calls Flush when the stream
// is full and at the end.
type Stream struct{ w writer }

// NewStream returns a stream that writes to the table id. found means that the table
// existed before, so that rows it already has are not written again. untried means that
// another part created the table: if the first batch finds no rows there, later batches
// are not looked up.
func NewStream(b *table.Bigtable, o table.Options, id string, found, untried bool) *Stream {
	return &Stream{writer{b: b, o: o.Normalized(), tables: []writeTable{{ID: id, found: found, untried: untried}}}}
}

// Full reports whether the queued rows fill a batch.
func (s *Stream) Full() bool { return s.w.full() }

// Add queues a row of size bytes. The stream owns the row until the next Flush.
func (s *Stream) Add(row *btpb.MutateRowsRequest_Entry, size int) {
	s.w.queue(0, writeEntry{MutateRowsRequest_Entry: row}, size)
}

// Flush sends the queued rows. It returns an error if a row is refused permanently.
func (s *Stream) Flush(ctx context.Context) error {
	_, _, err := s.w.flush(ctx)
	return err
}
