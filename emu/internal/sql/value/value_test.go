package value_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// drawType draws a type that the API has.
func drawType(depth int) *rapid.Generator[value.Type] {
	return rapid.Custom(func(t *rapid.T) value.Type {
		scalars := []value.Type{
			value.BoolType, value.Int64Type, value.Float32Type, value.Float64Type, value.StringType, value.BytesType,
			value.DateType, value.TimestampType,
		}
		most := len(scalars) - 1
		if depth > 0 {
			most += 3
		}
		switch n := rapid.IntRange(0, most).Draw(t, "type"); n {
		case len(scalars):
			elem := drawType(depth - 1).Filter(func(t value.Type) bool { return t.Kind() != value.KindArray })
			return value.ArrayOf(elem.Draw(t, "element"))
		case len(scalars) + 1:
			var fields []value.Field
			for range rapid.IntRange(0, 3).Draw(t, "fields") {
				fields = append(fields, value.Field{Name: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"), Type: drawType(depth-1).Draw(t, "field")})
			}
			return value.StructOf(fields...)
		case len(scalars) + 2:
			key := rapid.SampledFrom([]value.Type{value.BytesType, value.StringType, value.Int64Type}).Draw(t, "key")
			return value.MapOf(key, drawType(depth-1).Draw(t, "value"))
		default:
			return scalars[n]
		}
	})
}

// drawValue draws a value of a type, or NULL. Values are often equal.
func drawValue(t *rapid.T, typ value.Type, nullable bool) value.Value {
	if nullable && rapid.IntRange(0, 5).Draw(t, "null") == 0 {
		return value.Null
	}
	text := rapid.SampledFrom([]string{"", "a", "ab", "b", "é"})
	switch typ.Kind() { //nolint:exhaustive // the last one is MAP
	case value.KindBool:
		return value.Bool(rapid.Bool().Draw(t, "bool"))
	case value.KindInt64:
		return value.Int64(rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64}).Draw(t, "int"))
	case value.KindFloat32:
		return value.Float32(rapid.SampledFrom([]float32{0, 1.5, -1.5, math.MaxFloat32}).Draw(t, "float"))
	case value.KindFloat64:
		return value.Float64(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 0.1, -1e300}).Draw(t, "float"))
	case value.KindString:
		return value.String(text.Draw(t, "text"))
	case value.KindBytes:
		return value.BytesOf(text.Draw(t, "bytes") + "\xff"[:rapid.IntRange(0, 1).Draw(t, "bad")])
	case value.KindDate:
		return value.Date(rapid.Int64Range(value.MinDate, value.MaxDate).Draw(t, "date"))
	case value.KindTimestamp:
		return value.Timestamp(rapid.Int64Range(value.MinMicros, value.MaxMicros).Draw(t, "timestamp"))
	case value.KindArray:
		elems := make([]value.Value, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range elems {
			elems[i] = drawValue(t, typ.Elem(), true)
		}
		return value.Array(elems)
	case value.KindStruct:
		fields := make([]value.Value, len(typ.Fields()))
		for i, f := range typ.Fields() {
			fields[i] = drawValue(t, f.Type, true)
		}
		return value.Struct(fields...)
	default:
		var pairs []value.Value
		seen := map[string]bool{}
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			k := drawValue(t, typ.Key(), false)
			if key := string(value.AppendKey(nil, k)); !seen[key] {
				seen[key] = true
				pairs = append(pairs, k, drawValue(t, typ.Elem(), true))
			}
		}
		m, _, _ := value.MapOfPairs(pairs)
		return m
	}
}

// TestProto converts types and values to the messages of the API and back.
func TestProto(t *testing.T) {
	t.Parallel()
	rapid.Check(t, property.First(40, func(t *rapid.T) {
		typ := drawType(3).Draw(t, "type")
		again, err := value.TypeFromProto(typ.Proto())
		if err != nil || !again.Equal(typ) {
			t.Fatalf("%v became %v, %v", typ, again, err)
		}
		v := drawValue(t, typ, true)
		m, err := value.ToProto(v, typ)
		if err != nil {
			t.Fatal(err)
		}
		wire, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		field, err := value.AppendProto([]byte("before"), 7, v, typ)
		if want := protowire.AppendBytes(protowire.AppendTag([]byte("before"), 7, protowire.BytesType), wire); err != nil || !bytes.Equal(field, want) {
			t.Fatalf("%v of %v is encoded as %q, %v; want %q", v, typ, field, err, want)
		}
		read := &btpb.Value{}
		if err := proto.Unmarshal(wire, read); err != nil {
			t.Fatal(err)
		}
		got, err := value.FromProto(read, typ)
		if err != nil || !value.Identical(got, v) {
			t.Fatalf("%v of %v became %v, %v", v, typ, got, err)
		}
	}))
}

// TestKeys compares keys of groups with the order of values.
func TestKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, property.First(40, func(t *rapid.T) {
		typ := drawType(2).Draw(t, "type")
		a, b := drawValue(t, typ, true), drawValue(t, typ, true)
		same := bytes.Equal(value.AppendKey(nil, a), value.AppendKey(nil, b))
		if same != value.Identical(a, b) {
			t.Errorf("keys of %v and %v are equal: %t, but Compare returns %d", a, b, same, value.Compare(a, b))
		}
		if value.Compare(a, b) != -value.Compare(b, a) {
			t.Errorf("the order of %v and %v depends on the side", a, b)
		}
		if c := a.Clone(); !value.Identical(a, c) || c.Size() != a.Size() {
			t.Errorf("a clone of %v is %v", a, c)
		}
		if e := value.Equal(a, b); !e.IsNull() && e.Bool() && !same {
			t.Errorf("%v = %v, but their keys differ", a, b)
		}
	}))
}

// TestCast_RoundTrip casts values to STRING and back.
func TestCast_RoundTrip(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "America/Los_Angeles", "Asia/Kolkata", "+14", "-03:30"}
	check := func(t *rapid.T, v value.Value, typ value.Type, zone *time.Location) {
		text, err := value.Cast(v, typ, value.StringType, zone)
		if err != nil {
			t.Fatalf("%v of %v: %v", v, typ, err)
		}
		got, err := value.Cast(text, value.StringType, typ, zone)
		if err != nil || !value.Identical(got, v) {
			t.Errorf("%v of %v became %q, then %v, %v", v, typ, text.Str(), got, err)
		}
	}
	rapid.Check(t, property.First(30, func(t *rapid.T) {
		zone, err := value.Zone(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, value.Int64(rapid.Int64().Draw(t, "int")), value.Int64Type, zone)
		check(t, value.Float64(rapid.Float64().Draw(t, "float")), value.Float64Type, zone)
		check(t, value.Date(rapid.Int64Range(value.MinDate, value.MaxDate).Draw(t, "date")), value.DateType, zone)
		const day = 86400e6
		check(t, value.Timestamp(rapid.Int64Range(value.MinMicros+day, value.MaxMicros-day).Draw(t, "timestamp")), value.TimestampType, zone)
	}))
}

// TestValue_Size keeps a value small and scalar values without memory of their own. It counts
// allocations, so it runs alone.
func TestValue_Size(t *testing.T) {
	if n := unsafe.Sizeof(value.Value{}); n > 40 {
		t.Errorf("a value has %d bytes; want at most 40", n)
	}
	b := []byte("text")
	var sum int
	if n := testing.AllocsPerRun(10, func() {
		for _, v := range []value.Value{value.Int64(1), value.Float64(2), value.Bool(true), value.Date(3), value.Timestamp(4), value.Bytes(b)} {
			sum += len(v.Bytes()) + int(v.Int64()&1)
		}
	}); n != 0 {
		t.Errorf("%v allocations for scalar values", n)
	}
}

func TestType(t *testing.T) {
	t.Parallel()
	typ := value.MapOf(value.BytesType, value.ArrayOf(value.StructOf(value.Field{Name: "timestamp", Type: value.TimestampType}, value.Field{Type: value.BytesType})))
	if got, want := typ.String(), "MAP<BYTES, ARRAY<STRUCT<timestamp TIMESTAMP, BYTES>>>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for name, want := range map[string]value.Type{"tinyint": value.Int64Type, "Boolean": value.BoolType, "FLOAT64": value.Float64Type} {
		if got, ok := value.ScalarType(name); !ok || !got.Equal(want) {
			t.Errorf("%s is %v, %t", name, got, ok)
		}
	}
	if _, ok := value.ScalarType("numeric"); ok {
		t.Error("NUMERIC is a type")
	}
	two := value.StructOf(value.Field{Name: "a", Type: value.Int64Type}, value.Field{Name: "A", Type: value.BoolType}, value.Field{Name: "b", Type: value.BoolType})
	if _, count, ok := two.Field("a"); ok || count != 2 {
		t.Errorf("a is one of %d fields, %t", count, ok)
	}
	if i, _, ok := two.Field("B"); !ok || i != 2 {
		t.Errorf("b is field %d, %t", i, ok)
	}
	for _, c := range []struct {
		typ                       value.Type
		equality, order, grouping bool
	}{
		{value.BytesType, true, true, true},
		{value.ArrayOf(value.Int64Type), true, false, true},
		{two, true, false, true},
		{value.MapOf(value.BytesType, value.BytesType), false, false, false},
		{value.ArrayOf(value.MapOf(value.BytesType, value.BytesType)), false, false, false},
		{value.ProtoOf("b", (&btpb.Row{}).ProtoReflect().Descriptor()), false, false, false},
		{value.EnumOf("b", descriptorpb.FieldDescriptorProto_TYPE_BOOL.Descriptor()), true, true, true},
	} {
		if c.typ.SupportsEquality() != c.equality || c.typ.SupportsOrdering() != c.order || c.typ.SupportsGrouping() != c.grouping {
			t.Errorf("%v: equality %t, order %t, grouping %t", c.typ, c.typ.SupportsEquality(), c.typ.SupportsOrdering(), c.typ.SupportsGrouping())
		}
	}
}

// TestCompare has NULL first, then NaN, and no order of NaN in SQL.
func TestCompare(t *testing.T) {
	t.Parallel()
	sorted := []value.Value{value.Null, value.Float64(math.NaN()), value.Float64(math.Inf(-1)), value.Float64(0), value.Float64(math.Inf(1))}
	for i := range sorted {
		for j := range sorted {
			if got, want := value.Compare(sorted[i], sorted[j]), i-j; (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("Compare of %d and %d is %d", i, j, got)
			}
		}
	}
	if _, ok := value.Ordered(sorted[1], sorted[1]); ok {
		t.Error("NaN has an order")
	}
	if e := value.Equal(sorted[1], sorted[1]); e.Bool() {
		t.Error("NaN = NaN")
	}
	if !value.Identical(value.Float64(0), value.Float64(math.Copysign(0, -1))) {
		t.Error("0 is not identical to -0")
	}
	m, _, ok := value.MapOfPairs([]value.Value{value.BytesOf("b"), value.Int64(2), value.BytesOf("a"), value.Int64(1)})
	if v, found := m.Lookup(value.BytesOf("b")); !ok || !found || v.Int64() != 2 || m.Len() != 2 {
		t.Errorf("the map has %v, %t, %t", v, ok, found)
	}
	if _, found := m.Lookup(value.BytesOf("c")); found {
		t.Error("the map has c")
	}
	if _, twice, ok := value.MapOfPairs([]value.Value{value.BytesOf("b"), value.Null, value.BytesOf("b"), value.Null}); ok || twice.Str() != "b" {
		t.Errorf("a key occurs twice: %v, %t", twice, ok)
	}
}

// TestFromProto_Refuses has messages of strangers.
func TestFromProto_Refuses(t *testing.T) {
	t.Parallel()
	list := func(values ...*btpb.Value) *btpb.Value {
		return &btpb.Value{Kind: &btpb.Value_ArrayValue{ArrayValue: &btpb.ArrayValue{Values: values}}}
	}
	number := &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: 1}}
	float := func(f float64) *btpb.Value { return &btpb.Value{Kind: &btpb.Value_FloatValue{FloatValue: f}} }
	typed := &btpb.Value{Type: value.Int64Type.Proto(), Kind: number.GetKind()}
	pair := value.MapOf(value.Int64Type, value.Int64Type)
	for name, c := range map[string]struct {
		m   *btpb.Value
		typ value.Type
	}{
		"another kind":     {number, value.StringType},
		"NaN":              {float(math.NaN()), value.Float64Type},
		"infinity":         {float(math.Inf(1)), value.Float32Type},
		"large FLOAT32":    {float(1e300), value.Float32Type},
		"bad UTF-8":        {&btpb.Value{Kind: &btpb.Value_StringValue{StringValue: "\xff"}}, value.StringType},
		"typed element":    {list(typed), value.ArrayOf(value.Int64Type)},
		"struct arity":     {list(number), value.StructOf()},
		"entry arity":      {list(list(number)), pair},
		"entry of a value": {list(number), pair},
		"key twice":        {list(list(number, number), list(number, number)), pair},
		"date without day": {&btpb.Value{Kind: &btpb.Value_DateValue{}}, value.DateType},
		"late timestamp":   {&btpb.Value{Kind: &btpb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Seconds: math.MaxInt64}}}, value.TimestampType},
		"array of null":    {list(nil, &btpb.Value{Kind: &btpb.Value_BoolValue{}}), value.ArrayOf(value.Int64Type)},
	} {
		v, err := value.FromProto(c.m, c.typ)
		var e *value.Error
		if !errors.As(err, &e) || e.Code != codes.InvalidArgument {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	deep := value.Int64Type.Proto()
	for range 20 {
		deep = &btpb.Type{Kind: &btpb.Type_StructType{StructType: &btpb.Type_Struct{Fields: []*btpb.Type_Struct_Field{{Type: deep}}}}}
	}
	for name, m := range map[string]*btpb.Type{
		"nil": nil, "no kind": {}, "deep": deep,
		"array of arrays":  {Kind: &btpb.Type_ArrayType{ArrayType: &btpb.Type_Array{ElementType: value.ArrayOf(value.Int64Type).Proto()}}},
		"array of nothing": {Kind: &btpb.Type_ArrayType{}},
		"key of FLOAT64":   {Kind: &btpb.Type_MapType{MapType: &btpb.Type_Map{KeyType: value.Float64Type.Proto(), ValueType: value.Int64Type.Proto()}}},
		"aggregate":        {Kind: &btpb.Type_AggregateType{}},
	} {
		if typ, err := value.TypeFromProto(m); err == nil {
			t.Errorf("%s is %v", name, typ)
		}
	}
	if _, err := value.ToProto(value.Float64(math.NaN()), value.Float64Type); err == nil {
		t.Error("NaN has a message")
	}
	if got := value.KindField(value.BytesType.Proto()); got != "bytes_type" {
		t.Errorf("the kind of BYTES is %s", got)
	}
	if got := value.KindField(&btpb.Type{}); got != "" {
		t.Errorf("the kind of no type is %s", got)
	}
}

// FuzzParseTimestamp reads texts as timestamps; a text of the result has the same value.
func FuzzParseTimestamp(f *testing.F) {
	for _, s := range []string{
		"2024-01-01 00:00:00 America/Los_Angeles", "2024-1-1T1:2:3.5Z", "2024-01-01 +05:30", "9999-12-31 23:59:60", "0001-01-01 UTC-2",
		"2024-03-10 02:30:00 America/New_York", "2024-01-01 00:00:00 ../../etc/passwd", "2024-01-01 \x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := value.ParseTimestamp(s, time.UTC)
		if err != nil {
			if !v.IsNull() || len(err.Error()) > len(s)+64 {
				t.Errorf("%q: %v, %v", s, v, err)
			}
			return
		}
		text := value.TimestampText(v.Int64(), time.UTC)
		again, err := value.ParseTimestamp(text, time.UTC)
		if err != nil || again != v {
			t.Errorf("%q is %s, which is %v, %v", s, text, again, err)
		}
		if d, err := value.ParseDate(strings.Split(text, " ")[0]); err != nil || d.Int64() != value.DateIn(v.Int64(), time.UTC) {
			t.Errorf("the date of %s is %v, %v", text, d, err)
		}
	})
}

// FuzzCastText casts texts to numbers, and the numbers back.
func FuzzCastText(f *testing.F) {
	for _, s := range []string{"1", " +0x1F ", "-9223372036854775808", "1e400", "nan", "-inf", "0x", "1_0", "+-1", "--0x1", "\u00a01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, typ := range []value.Type{value.Int64Type, value.Float64Type, value.Float32Type, value.BoolType, value.DateType} {
			v, err := value.Cast(value.String(s), value.StringType, typ, time.UTC)
			if err != nil {
				continue
			}
			text, err := value.Cast(v, typ, value.StringType, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			again, err := value.Cast(text, value.StringType, typ, time.UTC)
			if err != nil || typ.Kind() != value.KindFloat32 && !value.Identical(again, v) {
				t.Errorf("%q as %v is %q, which is %v, %v", s, typ, text.Str(), again, err)
			}
		}
	})
}
