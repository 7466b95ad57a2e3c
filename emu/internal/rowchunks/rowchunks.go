// Package rowchunks encodes the responses of ReadRows.
package rowchunks

import (
	"bytes"
	"runtime"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// Sizes of messages, in bytes.
const (
	// MaxMessageBytes bounds a response of ReadRows with several rows, including
	// the protocol's overhead. Clients get their first rows the sooner, and tests
	// of official clients count on messages of the service about as large: of
	// 32 rows of 17 KB in all, six messages or more.
	MaxMessageBytes = 100 << 10
	// maxRowMessageBytes bounds a response with a part of one row. It is just
	// below the 4 MiB that grpc receives by default, which clients that dial an
	// emulator keep: the official Go and Python clients cannot read a row that
	// goes on in the next message.
	maxRowMessageBytes = 4<<20 - 64<<10
	// FirstMessageBytes is the size at which the first response of ReadRows is
	// sent: who waits for it has nothing yet.
	FirstMessageBytes = 32 << 10
	// MaxValueBytes is the largest piece of a value in one chunk.
	MaxValueBytes = 960 << 10
)

// Writer turns rows into the chunks of ReadRows responses: the row key, the
// family and the qualifier only where they change; several rows a message as
// long as they fit into MaxMessageBytes, and a larger row in one of its own;
// values above MaxValueBytes in pieces, all but the last with the value's
// size; commit_row on the last chunk of a row. A message ends within a row only
// if the row does not fit into maxRowMessageBytes. Each message has memory of its
// own, since it belongs to its receiver once it is sent, unless sending copies.
type Writer struct {
	Send func(*btpb.ReadRowsResponse) error
	// SendCopies promises that the memory of a message can be reused once it is sent.
	SendCopies bool
	// WholeRows reports whether a message may only end after a whole row, however large
	// it becomes. The first row that does not fit calls it; then it is nil.
	WholeRows func() bool
	whole     bool // what it said
	// RowLimitBytes is the size of the largest row that can be read; 0 means
	// unlimited.
	RowLimitBytes int

	row       []byte // the current row's key, of the scan
	cells     int64  // of the current row
	rowBytes  int    // keys, qualifiers and values of the current row
	family    string // of the previous cell of the row
	qualifier []byte // likewise, a copy

	sent bool                   // there was a message before resp
	resp *btpb.ReadRowsResponse // being filled; nil when empty
	size int                    // its serialized size, or a bit more
	buf  []byte                 // memory for its bytes
	slab []btpb.ReadRowsResponse_CellChunk
	// Of messages that were copied: their chunks, and the memory of a list of them.
	free, list []*btpb.ReadRowsResponse_CellChunk
	// What chunks of resp share: rows of a table are much alike.
	named struct {
		family     *wrapperspb.StringValue
		qualifiers [16]*wrapperspb.BytesValue // by the place in the row
		commit     *btpb.ReadRowsResponse_CellChunk_CommitRow
	}
	// The chunks of resp that belong to whole rows, and their size.
	committed, committedSize int
}

// Begin starts a row. key must stay as it is until Commit.
func (w *Writer) Begin(key []byte) {
	w.row, w.cells, w.rowBytes = key, 0, len(key)
}

// Add appends a cell to the row.
func (w *Writer) Add(c *filter.Cell) error {
	w.rowBytes += len(c.Family) + len(c.Qualifier) + len(c.Value)
	if w.RowLimitBytes > 0 && w.rowBytes > w.RowLimitBytes {
		return refusal.LargeRow(w.row, w.RowLimitBytes)
	}
	first := w.cells == 0
	newFamily := first || c.Family != w.family
	newColumn := newFamily || !bytes.Equal(c.Qualifier, w.qualifier)
	w.cells++

	value := c.Value
	head := 32 // tags, lengths, timestamp, commit_row: a safe bound
	if first {
		head += len(w.row)
	}
	if newFamily {
		head += len(c.Family) + 8
	}
	if newColumn {
		head += len(c.Qualifier) + 16
	}
	head += len(c.Label)
	chunk, err := w.chunk(head + min(len(value), MaxValueBytes))
	if err != nil {
		return err
	}
	if first {
		chunk.RowKey = w.keep(w.row)
	}
	if newFamily {
		w.family = c.Family
		if w.named.family == nil || w.named.family.GetValue() != c.Family {
			w.named.family = wrapperspb.String(c.Family)
		}
		chunk.FamilyName = w.named.family
	}
	if newColumn {
		w.qualifier = append(w.qualifier[:0], c.Qualifier...)
		at := &w.named.qualifiers[int(w.cells)%len(w.named.qualifiers)]
		if *at == nil || !bytes.Equal((*at).GetValue(), c.Qualifier) {
			*at = wrapperspb.Bytes(w.keep(c.Qualifier))
		}
		chunk.Qualifier = *at
	}
	chunk.TimestampMicros = c.TimestampMicros
	if c.Label != "" {
		chunk.Labels = []string{c.Label}
	}
	for len(value) > MaxValueBytes {
		chunk.Value = w.keep(value[:MaxValueBytes])
		chunk.ValueSize = int32(len(c.Value))
		value = value[MaxValueBytes:]
		if chunk, err = w.chunk(32 + min(len(value), MaxValueBytes)); err != nil {
			return err
		}
	}
	chunk.Value = w.keep(value)
	return nil
}

// Commit ends the row and returns the number of its cells. A row without cells
// leaves no trace.
func (w *Writer) Commit() (cells int64, err error) {
	if w.cells == 0 {
		return 0, nil
	}
	chunks := w.resp.GetChunks()
	if w.named.commit == nil {
		w.named.commit = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
	}
	chunks[len(chunks)-1].RowStatus = w.named.commit
	row := w.size - w.committedSize
	w.committed, w.committedSize = len(chunks), w.size
	// Rows are much alike: one that would not fit would take this message's
	// memory with it into the next.
	if w.size+row > MaxMessageBytes || !w.sent && w.size >= FirstMessageBytes {
		err = w.Flush()
		// On one processor the message would wait until the client has room for no
		// more.
		runtime.Gosched()
	}
	return w.cells, err
}

// keepsWhole reports what WholeRows says.
func (w *Writer) keepsWhole() bool {
	if w.WholeRows != nil {
		w.whole, w.WholeRows = w.WholeRows(), nil
	}
	return w.whole
}

// chunk returns a new chunk of at most size bytes. It sends what is there
// first if the message would grow too large, so that the last chunk of a row
// is never gone when Commit comes.
func (w *Writer) chunk(size int) (*btpb.ReadRowsResponse_CellChunk, error) {
	const overhead = 8 // tag and length of the chunk in the message
	size += overhead
	if w.committed > 0 && w.size+size > MaxMessageBytes {
		if err := w.flushCommitted(); err != nil {
			return nil, err
		}
	}
	if w.resp != nil && w.size+size > maxRowMessageBytes && !w.keepsWhole() {
		if err := w.Flush(); err != nil {
			return nil, err
		}
	}
	if w.resp == nil {
		if w.list == nil {
			w.list = make([]*btpb.ReadRowsResponse_CellChunk, 0, 8)
		}
		w.resp, w.list = &btpb.ReadRowsResponse{Chunks: w.list}, nil
	}
	w.size += size
	if n := len(w.free); n > 0 {
		c := w.free[n-1]
		w.free = w.free[:n-1]
		c.Reset()
		w.resp.Chunks = append(w.resp.GetChunks(), c)
		return c, nil
	}
	if len(w.slab) == 0 {
		// Grow with the message: point reads need one or two.
		w.slab = make([]btpb.ReadRowsResponse_CellChunk, min(max(4, len(w.resp.GetChunks())), 64))
	}
	c := &w.slab[0]
	w.slab = w.slab[1:]
	w.resp.Chunks = append(w.resp.GetChunks(), c)
	return c, nil
}

// keep copies b into the message's memory.
func (w *Writer) keep(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	if len(b) > cap(w.buf)-len(w.buf) {
		// What was kept stays where it is; only the tail of the old memory is
		// lost.
		w.buf = make([]byte, 0, max(len(b), min(max(512, 2*cap(w.buf)), w.maxBuf())))
	}
	n := len(w.buf)
	w.buf = append(w.buf, b...)
	return w.buf[n:len(w.buf):len(w.buf)]
}

// maxBuf is how much memory is taken at once. That of a message that is copied
// is soon large enough for all of the next.
func (w *Writer) maxBuf() int {
	if w.SendCopies {
		return MaxMessageBytes
	}
	return 16 << 10
}

// Flush sends the message that is being filled, if there is one.
func (w *Writer) Flush() error {
	resp := w.resp
	if resp == nil {
		return nil
	}
	w.resp, w.size = nil, 0
	clear(w.named.qualifiers[:])
	w.named.family, w.named.commit = nil, nil
	w.committed, w.committedSize = 0, 0
	w.sent = true
	if err := w.Send(resp); err != nil {
		return err
	}
	if w.SendCopies {
		w.buf, w.free, w.list = w.buf[:0], append(w.free, resp.GetChunks()...), resp.GetChunks()[:0]
	} else {
		w.buf, w.slab = nil, nil
	}
	return nil
}

// flushCommitted sends the whole rows of the message and keeps the rest.
func (w *Writer) flushCommitted() error {
	chunks, size := w.resp.GetChunks(), w.size-w.committedSize
	rest := chunks[w.committed:]
	w.resp.Chunks = chunks[:w.committed]
	if len(rest) > 0 {
		w.buf = nil // it holds what the rest is made of
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(rest) > 0 {
		// The chunks move; their array stays with the message that is gone.
		w.resp, w.list = &btpb.ReadRowsResponse{Chunks: append([]*btpb.ReadRowsResponse_CellChunk(nil), rest...)}, nil
		w.size = size
	}
	return nil
}
