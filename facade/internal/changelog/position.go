package changelog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// Position is the place of a record in the logs of all tables in a catalog. It consists
// of a sequence number and the number of the process that assigned it.
type Position struct {
	Sequence uint64 // approximately nanoseconds of the wall clock
	Writer   uint16
}

// Compare orders positions, like cmp.Compare.
func (p Position) Compare(q Position) int {
	switch {
	case p.Sequence != q.Sequence && p.Sequence < q.Sequence, p.Sequence == q.Sequence && p.Writer < q.Writer:
		return -1
	case p == q:
		return 0
	default:
		return 1
	}
}

// Next returns the smallest position after p.
func (p Position) Next() Position {
	if p.Writer++; p.Writer == 0 {
		p.Sequence++
	}
	return p
}

// Time returns the approximate time at which the record was written.
func (p Position) Time() time.Time { return time.Unix(0, int64(p.Sequence)) }

// SequenceAt returns the sequence number that corresponds to a time.
func SequenceAt(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

// The external form: "1", 20 digits of the sequence number, 5 digits of the writer.
const positionDigits = 1 + 20 + 5

// String returns the external form of the position. It has a constant width, so that
// texts sort like positions.
func (p Position) String() string { return fmt.Sprintf("1%020d%05d", p.Sequence, p.Writer) }

// ParsePosition parses the text that String returns.
func ParsePosition(s string) (p Position, ok bool) {
	if len(s) != positionDigits || s[0] != '1' {
		return p, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return p, false
		}
	}
	seq, err := strconv.ParseUint(s[1:21], 10, 64)
	if err != nil {
		return p, false
	}
	writer, err := strconv.ParseUint(s[21:], 10, 16)
	return Position{seq, uint16(writer)}, err == nil
}

// positionBytes is the size of a position in keys.
const positionBytes = 8 + 2

func (p Position) append(to []byte) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(to, p.Sequence), p.Writer)
}

func positionOf(b []byte) Position {
	return Position{binary.BigEndian.Uint64(b), binary.BigEndian.Uint16(b[8:])}
}

// The key of a row in the log: the slot, and the position.
const (
	slotBytes = 2
	keyBytes  = slotBytes + positionBytes
)

// Key returns the row key of a record in the log.
func Key(slot uint16, p Position) []byte {
	return p.append(binary.BigEndian.AppendUint16(make([]byte, 0, keyBytes), slot))
}

// ParseKey returns the slot and the position in a row key that Key returned.
func ParseKey(key []byte) (slot uint16, p Position, ok bool) {
	if len(key) != keyBytes {
		return 0, p, false
	}
	return binary.BigEndian.Uint16(key), positionOf(key[slotBytes:]), true
}

// CellQualifierByte is the first byte of the columns of record cells. The id of the item
// and the position follow. Each record has a separate column, because only the newest
// cell of a column is kept.
const CellQualifierByte = 'r'

// CellQualifier returns the column of an item's record cell.
func CellQualifier(item []byte, p Position) []byte {
	q := append(make([]byte, 0, 1+len(item)+positionBytes), CellQualifierByte)
	return p.append(append(q, item...))
}

// idBytes is the size of an item's id.
const idBytes = 16

// CellItem returns the id of the item that the column of a record cell names.
func CellItem(qualifier []byte) (id [idBytes]byte) {
	copy(id[:], qualifier[1:])
	return id
}

// CellPosition returns the position that the column of a record cell names. If item is
// not nil, the column must belong to that item. ok is false for any other column.
func CellPosition(qualifier, item []byte) (p Position, ok bool) {
	if len(qualifier) != 1+idBytes+positionBytes || qualifier[0] != CellQualifierByte || !bytes.HasPrefix(qualifier[1:], item) {
		return p, false
	}
	return positionOf(qualifier[1+idBytes:]), true
}

// cellValue is the value of a record cell: the row of the log for the record, and the record.
type cellValue []byte

func newCellValue(slot uint16, p Position, r *Record) cellValue {
	return r.Append(append(make([]byte, 0, keyBytes+r.Bytes()), Key(slot, p)...))
}

// entry returns the mutation that adds the record to the log's table.
func (v cellValue) entry(p Position) *btpb.MutateRowsRequest_Entry {
	return &btpb.MutateRowsRequest_Entry{RowKey: v[:keyBytes:keyBytes], Mutations: []*btpb.Mutation{
		btclient.SetCell(Family, nil, CellMicros(p), v[keyBytes:]),
	}}
}

// CellMicros returns the timestamp of the cells that hold a record.
func CellMicros(p Position) int64 { return int64(p.Sequence/uint64(time.Millisecond)) * 1000 }
