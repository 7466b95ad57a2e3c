// Package rowchunks encodes the responses of ReadRows, or passes their rows to a client in this
// process.
package rowchunks

import (
	"bytes"
	"runtime"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// These are sizes of messages and their parts, in bytes.
const (
	// MaxMessageBytes is the maximum size of a ReadRows response with several rows, including
	// overhead. A small size lets clients get their first rows early. The service uses a similar
	// size, on which tests of official clients rely: they expect at least six messages for 32 rows
	// of 17 KB in total.
	MaxMessageBytes = 100 << 10
	// maxRowMessageBytes is the maximum size of a response with a part of one
	// row. It is just below grpc's default receive limit of 4 MiB, which
	// clients keep for emulators: the official Go and Python clients cannot
	// read a row that continues in the next message.
	maxRowMessageBytes = 4<<20 - 64<<10
	// FirstMessageBytes is the size at which the first response of ReadRows is sent, so that the
	// client does not wait for a full message.
	FirstMessageBytes = 32 << 10
	// MaxValueBytes is the maximum size of a value, or of a piece of a value, in one chunk.
	MaxValueBytes = 960 << 10
)

// Writer encodes rows as the chunks of ReadRows responses. Chunks contain the row key, family and
// qualifier only if they change. Rows share a message of up to MaxMessageBytes; a larger row has a
// separate message. Values above MaxValueBytes are split, and all pieces except the last carry the
// value's size. The last chunk of a row sets commit_row. A message ends within a row only if the
// row exceeds maxRowMessageBytes. Each message has separate memory because its receiver owns it,
// unless sending copies the message.
type Writer struct {
	Send func(*btpb.ReadRowsResponse) error
	// SendCopies allows the reuse of a message's memory after it was sent.
	SendCopies bool
	// WholeRows reports whether messages must end after whole rows, whatever their size. It is
	// called for the first row that does not fit, and then set to nil.
	WholeRows func() bool
	whole     bool // the result of WholeRows
	// RowLimitBytes is the maximum size of a readable row; 0 means unlimited.
	RowLimitBytes int
	// Rows takes the rows instead of messages. SendRows then replaces Send: it gets the number of
	// rows since the last call, and the size of the keys, qualifiers and values in messages with
	// those rows. Default: rows are sent in messages.
	Rows     cells.RowSink
	SendRows func(rows int, bytes int64) error
	taken    struct {
		rows     int
		bytes    int64
		rowBytes int // of the current row, or of the last one between rows
	}

	row       []byte // the current row's key, owned by the scan
	cells     int64  // of the current row
	rowBytes  int    // keys, qualifiers and values of the current row
	family    string // of the previous cell of the row
	qualifier []byte // likewise, copied

	sent bool                   // a message was sent before resp
	resp *btpb.ReadRowsResponse // the current message; nil if empty
	size int                    // upper bound for its serialized size
	buf  []byte                 // memory for its bytes fields
	slab []btpb.ReadRowsResponse_CellChunk
	// Chunks of copied messages, and the memory of a list of them.
	free, list []*btpb.ReadRowsResponse_CellChunk
	// Values shared by the chunks of resp: rows of a table are much alike.
	named struct {
		family     *wrapperspb.StringValue
		qualifiers [16]*wrapperspb.BytesValue // by the index in the row
		commit     *btpb.ReadRowsResponse_CellChunk_CommitRow
	}
	// Number and size of the chunks of resp that belong to whole rows.
	committed, committedSize int
}

// Reset clears the Writer, and keeps small memory that it shares with no message.
func (w *Writer) Reset() { *w = Writer{qualifier: w.qualifier[:0]} }

// Begin starts a row. The caller must not change key until Commit.
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
	if newColumn {
		w.family, w.qualifier = c.Family, append(w.qualifier[:0], c.Qualifier...)
	}
	if w.Rows != nil {
		w.pass(c, first, newColumn)
		return nil
	}

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
		if w.named.family == nil || w.named.family.GetValue() != c.Family {
			w.named.family = wrapperspb.String(c.Family)
		}
		chunk.FamilyName = w.named.family
	}
	if newColumn {
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

// Commit ends the row and returns the number of its cells. It does not send a row without cells.
func (w *Writer) Commit() (cells int64, err error) {
	if w.cells == 0 {
		return 0, nil
	}
	if w.Rows != nil {
		return w.cells, w.endRow()
	}
	chunks := w.resp.GetChunks()
	if w.named.commit == nil {
		w.named.commit = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
	}
	chunks[len(chunks)-1].RowStatus = w.named.commit
	row := w.size - w.committedSize
	w.committed, w.committedSize = len(chunks), w.size
	// Rows are much alike: if another one does not fit, its chunks would move
	// to the next message and keep the memory of this one.
	if w.size+row > MaxMessageBytes || !w.sent && w.size >= FirstMessageBytes {
		err = w.Flush()
		// On a single processor, the message would otherwise wait until the
		// client's window is full.
		runtime.Gosched()
	}
	return w.cells, err
}

// pass passes a cell to Rows.
func (w *Writer) pass(c *filter.Cell, first, newColumn bool) {
	if first {
		w.Rows.BeginRow(w.row)
		w.taken.rowBytes = len(w.row)
	}
	if newColumn {
		w.taken.rowBytes += len(c.Qualifier)
	}
	w.taken.rowBytes += len(c.Value)
	w.Rows.AddCell(cells.Cell{Family: c.Family, Qualifier: c.Qualifier, Timestamp: c.TimestampMicros, Value: c.Value})
}

// RowBytes returns the size of the key, qualifiers and values of the last row that Rows has taken.
func (w *Writer) RowBytes() int { return w.taken.rowBytes }

// endRow ends a row of Rows. It calls SendRows after about as many bytes as a message has.
func (w *Writer) endRow() error {
	w.Rows.EndRow()
	w.taken.rows++
	w.taken.bytes += int64(w.taken.rowBytes)
	if next := w.taken.bytes + int64(w.taken.rowBytes); next > MaxMessageBytes || !w.sent && w.taken.bytes >= FirstMessageBytes {
		return w.Flush()
	}
	return nil
}

// keepsWhole returns the result of WholeRows, which it calls once.
func (w *Writer) keepsWhole() bool {
	if w.WholeRows != nil {
		w.whole, w.WholeRows = w.WholeRows(), nil
	}
	return w.whole
}

// chunk returns a new chunk of at most size bytes. If the message would grow
// too large, it sends the message first, so that Commit can still change the
// last chunk of a row.
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
		// Grow with the message: point reads need only one or two.
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
		// Earlier slices stay valid; only the unused tail of the old memory is
		// lost.
		w.buf = make([]byte, 0, max(len(b), min(max(512, 2*cap(w.buf)), w.maxBuf())))
	}
	n := len(w.buf)
	w.buf = append(w.buf, b...)
	return w.buf[n:len(w.buf):len(w.buf)]
}

// maxBuf returns the maximum size of an allocation. The buffer of copied
// messages is reused, so that it soon fits all of the next message.
func (w *Writer) maxBuf() int {
	if w.SendCopies {
		return MaxMessageBytes
	}
	return 16 << 10
}

// Flush sends the current message, if it is not empty.
func (w *Writer) Flush() error {
	if n := w.taken.rows; n > 0 {
		size := w.taken.bytes
		w.taken.rows, w.taken.bytes, w.sent = 0, 0, true
		return w.SendRows(n, size)
	}
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

// flushCommitted sends the whole rows of the message, and keeps the rest.
func (w *Writer) flushCommitted() error {
	chunks, size := w.resp.GetChunks(), w.size-w.committedSize
	rest := chunks[w.committed:]
	w.resp.Chunks = chunks[:w.committed]
	if len(rest) > 0 {
		w.buf = nil // the remaining chunks use it
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(rest) > 0 {
		// Copy the chunks: their array belongs to the sent message.
		w.resp, w.list = &btpb.ReadRowsResponse{Chunks: append([]*btpb.ReadRowsResponse_CellChunk(nil), rest...)}, nil
		w.size = size
	}
	return nil
}
