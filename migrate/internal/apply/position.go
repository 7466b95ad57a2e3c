package apply

import (
	"bytes"
	"encoding/binary"
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// Position orders the changes of one item: by the epoch, then by the order. The zero Position means
// that a change has none.
type Position struct {
	// Epoch grows when the numbers of the source begin again, as after a stream was disabled and
	// enabled.
	Epoch uint16
	// Order is a number, most significant byte first. A sequence number of DynamoDB Streams has up
	// to 40 digits, which 17 bytes hold.
	Order [20]byte
}

// Compare returns -1, 0 or 1.
func (p Position) Compare(o Position) int {
	if p.Epoch != o.Epoch {
		if p.Epoch < o.Epoch {
			return -1
		}
		return 1
	}
	return bytes.Compare(p.Order[:], o.Order[:])
}

// A position cell is one cell in family lens.FamilyPosition. Its value has these parts:
//
//	format    1 byte
//	epoch     2 bytes
//	order    20 bytes
//	state     1 byte: L if the item exists, T if it was deleted
//	time      8 bytes: of the change, in microseconds
//
// All numbers begin with the most significant byte, so that values compare as positions do. In a
// table of items, the qualifier is the id of the item, since a row may have several; in an index it
// is empty.
const (
	positionFormat = 1
	stateLive      = 'L'
	stateGone      = 'T'
	orderedBytes   = 2 + 20 // what [Position.Append] writes
	positionBytes  = 1 + orderedBytes
	valueBytes     = positionBytes + 1 + 8
	// stampMicros is the time of all position cells, so that each replaces the former one: the clocks of
	// two processes can differ, and a deletion would cost as much as a cell.
	stampMicros = 0
)

// Stamp is the content of a position cell.
type Stamp struct {
	Position Position
	Gone     bool  // the item or entry was deleted
	Micros   int64 // time of the change
}

// Append appends the epoch and the order. The bytes compare as the positions do.
func (p Position) Append(dst []byte) []byte {
	return append(binary.BigEndian.AppendUint16(dst, p.Epoch), p.Order[:]...)
}

// PositionOf returns the position that [Position.Append] wrote as text, and the zero Position if text
// has another length.
func PositionOf(text []byte) (p Position) {
	if len(text) == orderedBytes {
		p.Epoch = binary.BigEndian.Uint16(text)
		copy(p.Order[:], text[2:])
	}
	return p
}

// prefix returns the beginning of the values of a position.
func (p Position) prefix() []byte {
	return p.Append(append(make([]byte, 0, valueBytes), positionFormat))
}

// value returns the value of a position cell.
func (s Stamp) value() []byte {
	state := byte(stateLive)
	if s.Gone {
		state = stateGone
	}
	return binary.BigEndian.AppendUint64(append(s.Position.prefix(), state), uint64(s.Micros)) //nolint:gosec // a round trip
}

// ParseStamp parses the value of a position cell.
func ParseStamp(value []byte) (Stamp, error) {
	var s Stamp
	if len(value) != valueBytes || value[0] != positionFormat {
		return s, fmt.Errorf("position cell %x: want %d bytes that begin with %d", value[:min(len(value), valueBytes)], valueBytes, positionFormat)
	}
	s.Position = PositionOf(value[1:positionBytes])
	switch value[positionBytes] {
	case stateLive:
	case stateGone:
		s.Gone = true
	default:
		return s, fmt.Errorf("position cell %x: the state is %q, want %q or %q", value, value[positionBytes], stateLive, stateGone)
	}
	s.Micros = int64(binary.BigEndian.Uint64(value[positionBytes+1:])) //nolint:gosec // a round trip
	return s, nil
}

// stampIn returns the value of the position cell with the given qualifier in a row, or nil.
func stampIn(row layout.Row, qualifier []byte) []byte {
	for _, c := range row.Cells {
		if c.Family == lens.FamilyPosition && bytes.Equal(c.Qualifier, qualifier) {
			return c.Value // the newest
		}
	}
	return nil
}

// set returns the mutation that writes a position cell.
func (s Stamp) set(qualifier []byte) *btpb.Mutation {
	return btclient.SetCell(lens.FamilyPosition, qualifier, stampMicros, s.value())
}

// reached returns the filter that matches a row whose position cell is at p or later. A column of
// positions has one cell; see stampMicros.
func reached(qualifier []byte, p Position) *btpb.RowFilter {
	return btclient.Chain(btclient.OfColumn(lens.FamilyPosition, qualifier), btclient.OfValues(p.prefix(), nil))
}
