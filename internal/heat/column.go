package heat

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Bucket holds the counts of a range of keys, from First to Last inclusive. Both are keys with
// counts; in a bucket of a single key, they are equal. Buckets are in the order of their first
// keys. They may overlap if columns with different buckets were merged.
type Bucket struct {
	First, Last []byte
	Counts
}

const (
	bucketBytes = 88
	columnBytes = 64 // memory of a column without its data, with slack
)

// column has the buckets of a span of time, packed.
type column struct {
	start    int64 // seconds since 1970
	width    int32 // in seconds
	n        int32 // buckets
	keyBytes int32 // of First and Last, unpacked
	data     []byte
}

func (c *column) size() int { return columnBytes + cap(c.data) + cap(c.data)/8 }

func (c *column) end() int64 { return c.start + int64(c.width) }

// pack makes a column of buckets. A key is stored as the length of the prefix that it shares
// with the one before, and the rest.
func pack(start int64, width int32, buckets []Bucket) column {
	c, _ := packIn(make([]byte, 0, 16*len(buckets)), start, width, buckets)
	return c
}

// packIn acts like pack, but writes the keys and counts into the memory of raw first. It
// returns raw, which may have grown. The column does not share it.
func packIn(raw []byte, start int64, width int32, buckets []Bucket) (column, []byte) {
	c := column{start: start, width: width, n: int32(len(buckets))}
	var previous []byte
	raw = raw[:0]
	for i := range buckets {
		b := &buckets[i]
		raw = appendKey(raw, previous, b.First)
		raw = appendKey(raw, b.First, b.Last)
		for _, n := range [...]uint64{b.Reads, b.Writes, b.Rows, b.Bytes, b.Errors} {
			raw = binary.AppendUvarint(raw, n)
		}
		c.keyBytes += int32(len(b.First) + len(b.Last))
		previous = b.First
	}
	c.data = slices.Clone(raw)
	return c, raw
}

func appendKey(dst, previous, key []byte) []byte {
	shared := 0
	for shared < min(len(previous), len(key)) && previous[shared] == key[shared] {
		shared++
	}
	dst = binary.AppendUvarint(dst, uint64(shared))
	dst = binary.AppendUvarint(dst, uint64(len(key)-shared))
	return append(dst, key[shared:]...)
}

// unpack appends the buckets of a column. Their keys have separate memory.
func (c *column) unpack(dst []Bucket) []Bucket {
	return c.unpackIn(dst, make([]byte, 0, c.keyBytes))
}

// unpackIn acts like unpack, but stores the keys in the memory of keys, which must have a
// capacity of at least keyBytes.
func (c *column) unpackIn(dst []Bucket, keys []byte) []Bucket {
	raw := c.data
	number := func() uint64 {
		v, n := binary.Uvarint(raw)
		raw = raw[n:]
		return v
	}
	key := func(previous []byte) []byte {
		shared, rest := number(), number()
		at := len(keys)
		keys = append(keys, previous[:shared]...)
		keys = append(keys, raw[:rest]...)
		raw = raw[rest:]
		return keys[at:len(keys):len(keys)]
	}
	dst = slices.Grow(dst, int(c.n))
	var previous []byte
	for range c.n {
		var b Bucket
		b.First = key(previous)
		b.Last = key(b.First)
		b.Reads, b.Writes, b.Rows, b.Bytes, b.Errors = number(), number(), number(), number(), number()
		previous = b.First
		dst = append(dst, b)
	}
	return dst
}

// merge appends the buckets of two sorted lists to dst, sorted, and joins those of the same
// keys. dst shares no memory with a or b.
func merge(dst, a, b []Bucket) []Bucket {
	for len(a) > 0 && len(b) > 0 {
		order := bytes.Compare(a[0].First, b[0].First)
		if order == 0 {
			order = bytes.Compare(a[0].Last, b[0].Last)
		}
		switch {
		case order < 0:
			dst, a = append(dst, a[0]), a[1:]
		case order > 0:
			dst, b = append(dst, b[0]), b[1:]
		default:
			dst = append(dst, a[0])
			dst[len(dst)-1].Add(b[0].Counts)
			a, b = a[1:], b[1:]
		}
	}
	return append(append(dst, a...), b...)
}

// squeeze groups sorted buckets until there are at most limit, with about the same load. A
// bucket with more than two such shares is unchanged. The result reuses the memory of the
// buckets.
func squeeze(buckets []Bucket, limit int) []Bucket {
	if len(buckets) <= limit {
		return buckets
	}
	var total uint64
	for i := range buckets {
		total += buckets[i].Load() + 1
	}
	// Two neighbors have more than most together, so there are at most limit groups.
	most := 2*total/uint64(limit) + 1
	out := buckets[:1]
	load := buckets[0].Load() + 1
	for _, b := range buckets[1:] {
		last, more := &out[len(out)-1], b.Load()+1
		if load+more > most {
			out, load = append(out, b), more
			continue
		}
		load += more
		last.Add(b.Counts)
		if bytes.Compare(b.Last, last.Last) > 0 {
			last.Last = b.Last
		}
	}
	return out
}
