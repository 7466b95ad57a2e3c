// Package hllpp implements HyperLogLog++ sketches, which estimate the number of distinct values in
// little space and can be merged.
//
// It produces the same bytes as the published library Zetasketch 0.1.0 (format version 2: an
// AggregatorStateProto of type 112), for sparse and dense sketches. Each library reads the sketches
// of the other, and the same additions and merges of marshaled sketches result in the same bytes.
// One case is better defined here: a sparse sketch is compacted before it is merged into a lower
// precision.
//
// For sparse sketches, the estimates of both libraries are equal. For dense sketches, this package
// uses an estimator without tables of measured bias (Ertl, New cardinality estimation algorithms
// for HyperLogLog sketches, 2017), with the same error of 1.04/sqrt(2^precision).
package hllpp

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// These are the precisions of new sketches. A dense sketch has 2^Precision registers. The values
// are the defaults of Zetasketch and of HLL_COUNT.INIT; Bigtable is assumed to use them too.
const (
	Precision       = 15
	SparsePrecision = 20
)

// Limits of readable sketches.
const (
	minPrecision       = 10
	maxPrecision       = 24
	maxSparsePrecision = 25
)

// ErrInvalid is wrapped by all errors of this package.
var ErrInvalid = errors.New("invalid HLL++ sketch")

// Type is the type of a sketch's values.
type Type int32

// These are the types; the values are their numbers in a sketch.
const (
	Int64 Type = 8  // 64-bit integers, which the sketch format calls unsigned
	Bytes Type = 11 // byte strings, and strings as their UTF-8 bytes
)

// String returns the name of the type.
func (t Type) String() string {
	switch t {
	case Int64:
		return "int64"
	case Bytes:
		return "bytes"
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Sketch is a HyperLogLog++ sketch. It is not safe for concurrent use.
type Sketch struct {
	valueType Type
	values    int64 // added, counting each time
	p, sp     int   // precisions; sp is 0 without a sparse form

	// A sketch is sparse, with encoded values, or dense, with registers.
	sparse  []uint32 // sorted; the highest value of each index
	pending []uint32 // not merged into sparse yet, in no order
	dense   []byte   // nil while sparse; 2^p registers
}

// New returns an empty sketch with the default precision.
func New(t Type) *Sketch { return &Sketch{valueType: t, p: Precision, sp: SparsePrecision} }

// NewPrecise returns an empty sketch with precisions that differ from the defaults. A sparse precision
// of 0 is for a sketch without a sparse form.
func NewPrecise(t Type, precision, sparse int) (*Sketch, error) {
	if precision < minPrecision || precision > maxPrecision {
		return nil, fmt.Errorf("%w: precision %d, want %d to %d", ErrInvalid, precision, minPrecision, maxPrecision)
	}
	if sparse != 0 && (sparse < precision || sparse > maxSparsePrecision) {
		return nil, fmt.Errorf("%w: sparse precision %d, want 0 or %d to %d", ErrInvalid, sparse, precision, maxSparsePrecision)
	}
	return &Sketch{valueType: t, p: precision, sp: sparse}, nil
}

// Type returns the type of the sketch's values.
func (s *Sketch) Type() Type { return s.valueType }

// AddInt64 adds a value to a sketch of type Int64.
func (s *Sketch) AddInt64(n int64) error {
	if s.valueType != Int64 {
		return fmt.Errorf("%w: cannot add an int64 to a sketch of type %v", ErrInvalid, s.valueType)
	}
	s.add(fingerprintInt64(n))
	return nil
}

// AddBytes adds a value to a sketch of type Bytes.
func (s *Sketch) AddBytes(b []byte) error {
	if s.valueType != Bytes {
		return fmt.Errorf("%w: cannot add bytes to a sketch of type %v", ErrInvalid, s.valueType)
	}
	s.add(fingerprint(b))
	return nil
}

// add adds a hash.
func (s *Sketch) add(hash uint64) {
	s.values++
	if s.dense != nil || s.sp == 0 {
		s.register(int(hash>>(64-s.p)), rho(hash, 64-s.p))
		return
	}
	s.push(s.encode(uint32(hash>>(64-s.sp)), rho(hash, 64-s.sp)))
}

// rho returns the number of leading zeros, plus one, of the lowest n bits of
// w; n+1 if they are all zero.
func rho(w uint64, n int) uint8 { return uint8(min(bits.LeadingZeros64(w<<(64-n)), n) + 1) }

// register raises a register of the dense form, and creates that form.
func (s *Sketch) register(index int, r uint8) {
	if s.dense == nil {
		s.dense = make([]byte, 1<<s.p)
	}
	s.dense[index] = max(s.dense[index], r)
}

// A sparse value has more information than a register, in one of two forms. The first is the index
// at the sparse precision; it needs a bit beyond the normal precision that is not zero, since the
// register follows from these bits. The second is a flag, the index at the normal precision, and
// the rho of the bits after the sparse index.
const (
	rhoBits = 6
	rhoMask = 1<<rhoBits - 1
)

// flag marks values of the second form. It is above all bits of both forms.
func (s *Sketch) flag() uint32 { return 1 << max(s.sp, s.p+rhoBits) }

// encode returns the sparse value of an index at the sparse precision.
func (s *Sketch) encode(index uint32, r uint8) uint32 {
	if index&(1<<(s.sp-s.p)-1) != 0 {
		return index
	}
	return s.flag() | index>>(s.sp-s.p)<<rhoBits | uint32(r)
}

// decode is the inverse of encode; r is 0 in the first form, which does not use it.
func (s *Sketch) decode(v uint32) (index uint32, r uint8) {
	if v&s.flag() == 0 {
		return v, 0
	}
	return (v ^ s.flag()) >> rhoBits << (s.sp - s.p), uint8(v & rhoMask)
}

// decodeDense returns the index and the content of the register of a sparse value.
func (s *Sketch) decodeDense(v uint32) (index int, r uint8) {
	i, r := s.decode(v)
	if v&s.flag() == 0 {
		return int(i >> (s.sp - s.p)), rho(uint64(i), s.sp-s.p)
	}
	return int(i >> (s.sp - s.p)), r + uint8(s.sp-s.p)
}

// lower returns the rho at the precision `to` of an index with its rho at the precision `from`,
// which is at least `to`.
func lower(index uint32, r uint8, from, to int) uint8 {
	if suffix := uint64(index) & (1<<(from-to) - 1); suffix != 0 {
		return rho(suffix, from-to)
	}
	return r + uint8(from-to)
}

// push adds a sparse value.
func (s *Sketch) push(v uint32) {
	s.pending = append(s.pending, v)
	if len(s.pending) > 1<<s.p/4 {
		s.compact()
	}
}

// compact merges the pending values. It makes the sketch dense if the sparse form would take more
// than three quarters of the space of the dense form.
func (s *Sketch) compact() {
	if len(s.pending) == 0 {
		return
	}
	slices.Sort(s.pending)
	s.sparse = s.unique(mergeSorted(s.sparse, s.pending))
	s.pending = s.pending[:0]
	if sparseBytes(s.sparse) > 1<<s.p/4*3 {
		s.densify()
	}
}

// densify converts the sparse form, without pending values, to the dense one.
func (s *Sketch) densify() {
	values := s.sparse
	s.sparse, s.pending = nil, nil
	for _, v := range values {
		s.register(s.decodeDense(v))
	}
}

// mergeSorted merges two sorted lists.
func mergeSorted(a, b []uint32) []uint32 {
	out := make([]uint32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] <= b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// unique keeps, in place, the last and highest of the sorted values of each
// index.
func (s *Sketch) unique(values []uint32) []uint32 {
	out := values[:0]
	for _, v := range values {
		if n := len(out); n > 0 && (v == out[n-1] || v&out[n-1]&s.flag() != 0 && v>>rhoBits == out[n-1]>>rhoBits) {
			out[n-1] = v
		} else {
			out = append(out, v)
		}
	}
	return out
}

// Merge adds the values of o, which may be compacted but otherwise stays unchanged. The precision
// becomes the lower of the two. It returns an error if the types differ, or if, of two sparse
// sketches, one has the higher precision and the other the higher sparse precision.
func (s *Sketch) Merge(o *Sketch) error {
	if s.valueType != o.valueType {
		return fmt.Errorf("%w: values of type %v merged into values of type %v", ErrInvalid, o.valueType, s.valueType)
	}
	s.compact()
	o.compact()
	if s.isSparse() && o.isSparse() && (s.p-o.p)*(s.sp-o.sp) < 0 {
		return fmt.Errorf("%w: precision %d, sparse %d merged into precision %d, sparse %d",
			ErrInvalid, o.p, o.sp, s.p, s.sp)
	}
	s.values += o.values
	if s.isSparse() && !o.isSparse() {
		s.densify()
		if s.dense == nil {
			s.dense = make([]byte, 1<<s.p)
		}
	}
	s.reduce(min(s.p, o.p), min(s.sp, o.sp))
	switch {
	case s.isSparse():
		if o.p == s.p && o.sp == s.sp {
			s.pending = append(s.pending, o.sparse...)
		} else {
			for _, v := range o.sparse {
				s.push(s.lowered(o, v))
				if !s.isSparse() {
					break
				}
			}
		}
		s.compact()
	case o.isSparse():
	default:
		for i, r := range o.dense {
			if r != 0 {
				s.register(i>>(o.p-s.p), lower(uint32(i), r, o.p, s.p))
			}
		}
	}
	if !s.isSparse() {
		for _, v := range o.sparse {
			i, r := o.decodeDense(v)
			s.register(i>>(o.p-s.p), lower(uint32(i), r, o.p, s.p))
		}
	}
	return nil
}

// isSparse reports whether the sketch has the sparse form.
func (s *Sketch) isSparse() bool { return s.dense == nil && s.sp != 0 }

// lowered returns the sparse value v of o at the precisions of s.
func (s *Sketch) lowered(o *Sketch, v uint32) uint32 {
	i, r := o.decode(v)
	return s.encode(i>>(o.sp-s.sp), lower(i, r, o.sp, s.sp))
}

// reduce lowers the precisions of the sketch, which must not have pending values.
func (s *Sketch) reduce(p, sp int) {
	if p == s.p && sp == s.sp {
		return
	}
	old := *s
	s.p, s.sp, s.sparse, s.dense = p, sp, nil, nil
	if !old.isSparse() {
		if old.dense != nil && p == old.p {
			s.dense = old.dense
			return
		}
		for i, r := range old.dense {
			if r != 0 {
				s.register(i>>(old.p-p), lower(uint32(i), r, old.p, p))
			}
		}
		if s.dense == nil {
			s.dense = make([]byte, 1<<p)
		}
		return
	}
	for _, v := range old.sparse {
		if s.dense == nil {
			s.push(s.lowered(&old, v))
			continue
		}
		i, r := old.decodeDense(v)
		s.register(i>>(old.p-p), lower(uint32(i), r, old.p, p))
	}
	s.compact()
}

// Estimate returns the approximate number of distinct values.
func (s *Sketch) Estimate() int64 {
	s.compact()
	if s.isSparse() {
		n := float64(uint64(1) << s.sp)
		return int64(math.Round(n * math.Log(n/(n-float64(len(s.sparse))))))
	}
	if s.dense == nil {
		return 0
	}
	counts := make([]float64, 66-s.p) // numbers of registers by their content
	for _, r := range s.dense {
		counts[r]++
	}
	m, q := float64(len(s.dense)), 64-s.p
	z := m * tau(1-counts[q+1]/m)
	for k := q; k >= 1; k-- {
		z = 0.5 * (z + counts[k])
	}
	z += m * sigma(counts[0]/m)
	return int64(math.Round(m * m / (2 * math.Ln2 * z)))
}

// sigma corrects for empty registers.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	z, y := x, 1.0
	for {
		x *= x
		before := z
		z += x * y
		if y += y; z == before {
			return z
		}
	}
}

// tau corrects for full registers.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	z, y := 1-x, 1.0
	for {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		if z -= (1 - x) * (1 - x) * y; z == before {
			return z / 3
		}
	}
}

// Numbers of the format.
const (
	aggregatorType  = 112
	encodingVersion = 2

	fieldType      = 1
	fieldValues    = 2
	fieldVersion   = 3
	fieldValueType = 4
	fieldState     = 112

	fieldSparseSize      = 2
	fieldPrecision       = 3
	fieldSparsePrecision = 4
	fieldData            = 5
	fieldSparseData      = 6
)

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// sparseBytes returns the size of the encoding of sorted values.
func sparseBytes(values []uint32) int {
	n, before := 0, uint32(0)
	for _, v := range values {
		n += protowire.SizeVarint(uint64(v - before))
		before = v
	}
	return n
}

// Marshal returns the canonical encoding of the sketch.
func (s *Sketch) Marshal() []byte {
	s.compact()
	var state []byte
	if len(s.sparse) > 0 {
		state = appendVarint(state, fieldSparseSize, uint64(len(s.sparse)))
	}
	state = appendVarint(state, fieldPrecision, uint64(s.p))
	if s.sp != 0 {
		state = appendVarint(state, fieldSparsePrecision, uint64(s.sp))
	}
	if s.dense != nil {
		state = protowire.AppendTag(state, fieldData, protowire.BytesType)
		state = protowire.AppendBytes(state, s.dense)
	} else if s.sp != 0 {
		state = protowire.AppendTag(state, fieldSparseData, protowire.BytesType)
		state = protowire.AppendVarint(state, uint64(sparseBytes(s.sparse)))
		before := uint32(0)
		for _, v := range s.sparse {
			state = protowire.AppendVarint(state, uint64(v-before))
			before = v
		}
	}
	b := make([]byte, 0, len(state)+32)
	b = appendVarint(b, fieldType, aggregatorType)
	b = appendVarint(b, fieldValues, uint64(s.values))
	b = appendVarint(b, fieldVersion, encodingVersion)
	b = appendVarint(b, fieldValueType, uint64(s.valueType))
	b = protowire.AppendTag(b, fieldState, protowire.BytesType)
	return protowire.AppendBytes(b, state)
}

// Unmarshal decodes and fully validates a sketch. It ignores unknown fields.
func Unmarshal(b []byte) (*Sketch, error) {
	s := &Sketch{}
	kind, version := uint64(aggregatorType), uint64(1)
	var state []byte
	err := fields(b, func(field int, v uint64, data []byte) {
		switch field {
		case fieldType:
			kind = v
		case fieldValues:
			s.values = int64(v)
		case fieldVersion:
			version = v
		case fieldValueType:
			s.valueType = Type(v)
		case fieldState:
			state = data
		}
	})
	if err != nil {
		return nil, err
	}
	switch {
	case kind != aggregatorType:
		return nil, fmt.Errorf("%w: the aggregator has type %d, want %d", ErrInvalid, kind, aggregatorType)
	case version != encodingVersion:
		return nil, fmt.Errorf("%w: the encoding version is %d, want %d", ErrInvalid, version, encodingVersion)
	case s.valueType != Int64 && s.valueType != Bytes:
		return nil, fmt.Errorf("%w: the value type is %d, want %d (int64) or %d (bytes)", ErrInvalid, s.valueType, Int64, Bytes)
	case s.values < 0:
		return nil, fmt.Errorf("%w: the number of values is %d", ErrInvalid, s.values)
	}
	return s, s.unmarshalState(state)
}

// fields calls fn with each field of a message. It rejects fields that are neither numbers nor
// bytes.
func fields(b []byte, fn func(field int, v uint64, data []byte)) error {
	for len(b) > 0 {
		field, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: it is not a protocol buffer", ErrInvalid)
		}
		b = b[n:]
		var v uint64
		var data []byte
		isBytes := wireType == protowire.BytesType
		if !isBytes && wireType != protowire.VarintType {
			return fmt.Errorf("%w: field %d has wire type %d", ErrInvalid, field, wireType)
		}
		if isBytes {
			data, n = protowire.ConsumeBytes(b)
		} else {
			v, n = protowire.ConsumeVarint(b)
		}
		if n < 0 {
			return fmt.Errorf("%w: field %d is cut off", ErrInvalid, field)
		}
		b = b[n:]
		fn(int(field), v, data)
	}
	return nil
}

// unmarshalState reads the HyperLogLog++ part of a sketch.
func (s *Sketch) unmarshalState(b []byte) error {
	var size, p, sp uint64
	var data, sparse []byte
	err := fields(b, func(field int, v uint64, b []byte) {
		switch field {
		case fieldSparseSize:
			size = v
		case fieldPrecision:
			p = v
		case fieldSparsePrecision:
			sp = v
		case fieldData:
			data = b
		case fieldSparseData:
			sparse = b
		}
	})
	if err != nil {
		return err
	}
	if p < minPrecision || p > maxPrecision {
		return fmt.Errorf("%w: precision %d, want %d to %d", ErrInvalid, p, minPrecision, maxPrecision)
	}
	if sp != 0 && (sp < p || sp > maxSparsePrecision) {
		return fmt.Errorf("%w: sparse precision %d, want 0 or %d to %d", ErrInvalid, sp, p, maxSparsePrecision)
	}
	s.p, s.sp = int(p), int(sp)
	switch {
	case len(data) > 0 && len(sparse) > 0:
		return fmt.Errorf("%w: the sketch is both sparse and dense", ErrInvalid)
	case len(sparse) > 0:
		return s.unmarshalSparse(sparse, size)
	case size != 0:
		return fmt.Errorf("%w: no sparse data, want %d values", ErrInvalid, size)
	case len(data) == 0:
		return nil
	case len(data) != 1<<s.p:
		return fmt.Errorf("%w: %d registers, want %d", ErrInvalid, len(data), 1<<s.p)
	}
	for i, r := range data {
		if int(r) > 65-s.p {
			return fmt.Errorf("%w: register %d holds %d, want at most %d", ErrInvalid, i, r, 65-s.p)
		}
	}
	s.dense = slices.Clone(data)
	return nil
}

// unmarshalSparse reads the values of the sparse form.
func (s *Sketch) unmarshalSparse(b []byte, size uint64) error {
	if s.sp == 0 {
		return fmt.Errorf("%w: sparse data without a sparse precision", ErrInvalid)
	}
	if uint64(len(b)) < size {
		return fmt.Errorf("%w: %d values in %d bytes", ErrInvalid, size, len(b))
	}
	values := make([]uint32, 0, size)
	v := uint64(0)
	for len(b) > 0 {
		delta, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return fmt.Errorf("%w: sparse data is cut off", ErrInvalid)
		}
		b = b[n:]
		if len(values) > 0 && delta == 0 || delta > math.MaxUint32 {
			return fmt.Errorf("%w: sparse data is not sorted", ErrInvalid)
		}
		v += delta
		if err := s.checkSparse(v); err != nil {
			return err
		}
		values = append(values, uint32(v))
	}
	if uint64(len(values)) != size {
		return fmt.Errorf("%w: %d sparse values, want %d", ErrInvalid, len(values), size)
	}
	s.sparse = s.unique(values)
	if len(s.sparse) != len(values) {
		return fmt.Errorf("%w: sparse data contains an index twice", ErrInvalid)
	}
	if sparseBytes(s.sparse) > 1<<s.p/4*3 {
		s.densify()
	}
	return nil
}

// checkSparse rejects values that encode never returns.
func (s *Sketch) checkSparse(v uint64) error {
	flag := uint64(s.flag())
	ok := v&flag == 0 && v < 1<<s.sp && v&(1<<(s.sp-s.p)-1) != 0
	if v&flag != 0 {
		r := v & rhoMask
		ok = v^flag < 1<<(s.p+rhoBits) && r >= 1 && int(r) <= 65-s.sp
	}
	if !ok {
		return fmt.Errorf("%w: the sparse value %#x is invalid", ErrInvalid, v)
	}
	return nil
}
