package wire

import (
	"sync"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of ReadRowsResponse and of its CellChunk, and the field of the
// wrappers.
const (
	responseChunk       = 1
	responseLastScanned = 2

	chunkRowKey    = 1
	chunkFamily    = 2
	chunkQualifier = 3
	chunkTimestamp = 4
	chunkLabel     = 5
	chunkValue     = 6
	chunkValueSize = 7
	chunkResetRow  = 8
	chunkCommitRow = 9

	wrapped = 1
)

// bytesSize returns the size of a field of n bytes. All field numbers above
// take one byte.
func bytesSize(n int) int { return 1 + protowire.SizeBytes(n) }

// optionalSize returns the size of a field of n bytes that is omitted if empty.
func optionalSize(n int) int {
	if n == 0 {
		return 0
	}
	return bytesSize(n)
}

func chunkSize(c *btpb.ReadRowsResponse_CellChunk) int {
	n := optionalSize(len(c.GetRowKey())) + optionalSize(len(c.GetValue()))
	if f := c.GetFamilyName(); f != nil {
		n += bytesSize(optionalSize(len(f.GetValue())))
	}
	if q := c.GetQualifier(); q != nil {
		n += bytesSize(optionalSize(len(q.GetValue())))
	}
	if t := c.GetTimestampMicros(); t != 0 {
		n += 1 + protowire.SizeVarint(uint64(t))
	}
	for _, l := range c.GetLabels() {
		n += bytesSize(len(l))
	}
	if s := c.GetValueSize(); s != 0 {
		n += 1 + protowire.SizeVarint(uint64(s))
	}
	if c.GetRowStatus() != nil {
		n += 2
	}
	return n
}

// readRowsSize returns the size of a response. ok is false if appendReadRows
// cannot encode it.
func readRowsSize(m *btpb.ReadRowsResponse) (size int, ok bool) {
	if m == nil || m.GetRequestStats() != nil {
		return 0, false
	}
	size = optionalSize(len(m.GetLastScannedRowKey()))
	for _, c := range m.GetChunks() {
		if c == nil || !utf8.ValidString(c.GetFamilyName().GetValue()) {
			return 0, false
		}
		for _, l := range c.GetLabels() {
			if !utf8.ValidString(l) {
				return 0, false
			}
		}
		size += bytesSize(chunkSize(c))
	}
	return size, true
}

func appendReadRows(dst []byte, m *btpb.ReadRowsResponse) []byte {
	for _, c := range m.GetChunks() {
		dst = appendHead(dst, responseChunk, chunkSize(c))
		dst = appendChunk(dst, c)
	}
	return appendOptional(dst, responseLastScanned, m.GetLastScannedRowKey())
}

func appendChunk(dst []byte, c *btpb.ReadRowsResponse_CellChunk) []byte {
	dst = appendOptional(dst, chunkRowKey, c.GetRowKey())
	if f := c.GetFamilyName(); f != nil {
		dst = appendHead(dst, chunkFamily, optionalSize(len(f.GetValue())))
		dst = appendOptional(dst, wrapped, f.GetValue())
	}
	if q := c.GetQualifier(); q != nil {
		dst = appendHead(dst, chunkQualifier, optionalSize(len(q.GetValue())))
		dst = appendOptional(dst, wrapped, q.GetValue())
	}
	dst = appendNumber(dst, chunkTimestamp, c.GetTimestampMicros())
	for _, l := range c.GetLabels() {
		dst = append(appendHead(dst, chunkLabel, len(l)), l...)
	}
	dst = appendOptional(dst, chunkValue, c.GetValue())
	dst = appendNumber(dst, chunkValueSize, int64(c.GetValueSize()))
	switch s := c.GetRowStatus().(type) {
	case *btpb.ReadRowsResponse_CellChunk_ResetRow:
		dst = appendBool(dst, chunkResetRow, s.ResetRow)
	case *btpb.ReadRowsResponse_CellChunk_CommitRow:
		dst = appendBool(dst, chunkCommitRow, s.CommitRow)
	}
	return dst
}

// appendHead appends the tag and length of a field of n bytes.
func appendHead(dst []byte, num protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.BytesType), uint64(n))
}

// appendOptional appends a bytes field unless it is empty.
func appendOptional[B string | []byte](dst []byte, num protowire.Number, b B) []byte {
	if len(b) == 0 {
		return dst
	}
	return append(appendHead(dst, num, len(b)), b...)
}

func appendNumber(dst []byte, num protowire.Number, n int64) []byte {
	if n == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), uint64(n))
}

func appendBool(dst []byte, num protowire.Number, b bool) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), protowire.EncodeBool(b))
}

// responsePool reuses the memory of large responses. Unlike gRPC's pool, it
// does not clear buffers that are about to be overwritten.
type responsePool struct{ pool sync.Pool }

// Get implements mem.BufferPool.
func (p *responsePool) Get(n int) *[]byte {
	if buf, ok := p.pool.Get().(*[]byte); ok && cap(*buf) >= n { // the next response is likely as large
		*buf = (*buf)[:n]
		return buf
	}
	buf := make([]byte, n, max(n+n/4, 4<<10))
	return &buf
}

// Put implements mem.BufferPool.
func (p *responsePool) Put(buf *[]byte) {
	if cap(*buf) <= maxPooledBytes {
		p.pool.Put(buf)
	}
}

// maxPooledBytes is the largest buffer kept: that of a usual response of many
// rows, with a margin.
const maxPooledBytes = 1 << 20
