package streams

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// IteratorAge is the lifetime of an iterator.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetShardIterator.html
const IteratorAge = 15 * time.Minute

// Iterator is a position in a shard. It contains its complete state, so it stays valid
// after a restart.
type Iterator struct {
	Stream                string // ARN of the stream
	Table, TableID, Label string
	Shard                 Shard
	From                  changelog.Position // first position to read
	Trims                 bool               // whether the start may be trimmed
	Issued                int64              // time in milliseconds
}

const iteratorVersion = 1

// iteratorKind separates the ARN of the stream from the position, as in iterators of the
// service.
const iteratorKind = "|1|"

// String returns the text that clients receive: the ARN of the stream, iteratorKind, and
// the base64 form of the version, the other members and a checksum.
func (it Iterator) String() string {
	b := []byte{iteratorVersion, 0}
	if it.Trims {
		b[1] = 1
	}
	for _, text := range []string{it.Table, it.TableID, it.Label} {
		b = tabledef.AppendBytes(b, []byte(text))
	}
	for _, n := range []uint64{it.Shard.Generation, uint64(it.Shard.Slot), it.From.Sequence, uint64(it.From.Writer), uint64(it.Issued)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return it.Stream + iteratorKind + base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// ParseIterator parses the text that String returns.
func ParseIterator(text string) (it Iterator, ok bool) {
	stream, place, ok := strings.Cut(text, iteratorKind)
	b, err := base64.StdEncoding.Strict().DecodeString(place)
	if !ok || err != nil || len(b) < 6 {
		return it, false
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.ChecksumIEEE(b) != sum || b[0] != iteratorVersion {
		return it, false
	}
	it.Stream, it.Trims = stream, b[1] == 1
	b = b[2:]
	for _, to := range []*string{&it.Table, &it.TableID, &it.Label} {
		var part []byte
		if part, b, ok = tabledef.CutBytes(b); !ok {
			return it, false
		}
		*to = string(part)
	}
	if !strings.HasSuffix(stream, "table/"+it.Table+"/stream/"+it.Label) {
		return it, false
	}
	const numbers = 5
	if len(b) != 8*numbers {
		return it, false
	}
	var n [numbers]uint64
	for i := range n {
		n[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	if n[1] > 1<<16 || n[3] >= 1<<16 {
		return it, false
	}
	it.Shard, it.From = Shard{n[0], int(n[1])}, changelog.Position{Sequence: n[2], Writer: uint16(n[3])}
	it.Issued = int64(n[4])
	return it, true
}

// Expired reports whether the iterator is too old.
func (it Iterator) Expired(now time.Time) bool {
	return now.UnixMilli()-it.Issued >= IteratorAge.Milliseconds()
}
