package load

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// Stream writes rows as a load does: it gathers them into calls, at the pace of the
// options, and repeats calls that may succeed later. A caller without items adds rows, and
// flushes whenever the stream is full, and at the end.
type Stream struct{ w writer }

// NewStream returns a stream to the table id. found says that the table was there before:
// its rows are read, and not written again. untried says that another part made it: if the
// first batch finds nothing, no other batch is looked up.
func NewStream(b *table.Bigtable, o table.Options, id string, found, untried bool) *Stream {
	return &Stream{writer{b: b, o: o.Normalized(), tables: []writeTable{{ID: id, found: found, untried: untried}}}}
}

// Full reports whether what was added is a batch.
func (s *Stream) Full() bool { return s.w.full() }

// Add queues a row of size bytes. The row is the stream's until the next Flush.
func (s *Stream) Add(row *btpb.MutateRowsRequest_Entry, size int) {
	s.w.queue(0, writeEntry{MutateRowsRequest_Entry: row}, size)
}

// Flush sends what was added. A row that is refused for good is an error.
func (s *Stream) Flush(ctx context.Context) error {
	_, _, err := s.w.flush(ctx)
	return err
}
