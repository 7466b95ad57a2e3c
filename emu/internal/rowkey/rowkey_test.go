package rowkey

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Numbers in ordered code have the bytes of the documentation's examples, and come back.
func TestOrderedCode(t *testing.T) {
	t.Parallel()
	for x, want := range map[int64]string{
		0: "80", 63: "bf", 64: "c040", 256: "c100", 8191: "dfff", 8192: "e02000", -1: "7f", -64: "40", -65: "3fbf", -8193: "1fdfff",
		math.MaxInt64: "ffc07fffffffffffffff", math.MinInt64: "003f8000000000000000",
	} {
		code := encodeOrdered(x)
		if got := hex.EncodeToString(code); got != want {
			t.Errorf("%d is %s, want %s", x, got, want)
		}
		if back, ok := decodeOrdered(code); !ok || back != x {
			t.Errorf("%s is %d, %t, want %d", want, back, ok, x)
		}
	}
	for _, bad := range []string{"", "c0", "80ff", "c000", "ff"} {
		code, _ := hex.DecodeString(bad)
		if x, ok := decodeOrdered(code); ok {
			t.Errorf("%s is %d", bad, x)
		}
	}
}

func FuzzOrderedCode(f *testing.F) {
	f.Add(int64(0), []byte{0x80})
	f.Fuzz(func(t *testing.T, x int64, code []byte) {
		if back, ok := decodeOrdered(encodeOrdered(x)); !ok || back != x {
			t.Errorf("%d comes back as %d, %t", x, back, ok)
		}
		if x, ok := decodeOrdered(code); ok && string(encodeOrdered(x)) != string(code) {
			t.Errorf("%x is %d, whose code is %x", code, x, encodeOrdered(x))
		}
	})
}

func text(name string) *btapb.Type_Struct_Field {
	return &btapb.Type_Struct_Field{FieldName: name, Type: &btapb.Type{Kind: &btapb.Type_StringType{StringType: &btapb.Type_String{}}}}
}

func number(name string) *btapb.Type_Struct_Field {
	ordered := &btapb.Type_Int64_Encoding{Encoding: &btapb.Type_Int64_Encoding_OrderedCodeBytes_{OrderedCodeBytes: &btapb.Type_Int64_Encoding_OrderedCodeBytes{}}}
	return &btapb.Type_Struct_Field{FieldName: name, Type: &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{Encoding: ordered}}}}
}

var (
	byHash  = &btapb.Type_Struct_Encoding{Encoding: &btapb.Type_Struct_Encoding_DelimitedBytes_{DelimitedBytes: &btapb.Type_Struct_Encoding_DelimitedBytes{Delimiter: []byte("#")}}}
	byOrder = &btapb.Type_Struct_Encoding{Encoding: &btapb.Type_Struct_Encoding_OrderedCodeBytes_{OrderedCodeBytes: &btapb.Type_Struct_Encoding_OrderedCodeBytes{}}}
)

func TestDecode(t *testing.T) {
	t.Parallel()
	hash := New(&btapb.Type_Struct{Fields: []*btapb.Type_Struct_Field{text("a"), text("b")}, Encoding: byHash})
	ordered := New(&btapb.Type_Struct{Fields: []*btapb.Type_Struct_Field{text("a"), number("n"), text("b")}, Encoding: byOrder})
	for _, c := range []struct {
		s    *Schema
		key  string
		want []value.Value // nil: it does not fit
	}{
		{hash, "x#y", []value.Value{value.String("x"), value.String("y")}},
		{hash, "#", []value.Value{value.String(""), value.String("")}},
		{hash, "x", nil},
		{hash, "x#y#z", nil},
		{hash, "x#\xff", nil},
		{ordered, "x\x00\x01\xc0\x40\x00\x01y", []value.Value{value.String("x"), value.Int64(64), value.String("y")}},
		{ordered, "x\x00\xffy\x00\x01\x80", []value.Value{value.String("x\x00y"), value.Int64(0), value.String("")}},
		{ordered, "\x00\x00\x00\x01\x80\x00\x01y", []value.Value{value.String(""), value.Int64(0), value.String("y")}},
		{ordered, "x", []value.Value{value.String("x"), value.Null, value.String("")}},
		{ordered, "x\x00", nil},
		{ordered, "x\x00\x02", nil},
		{ordered, "x\x00\x01\xff", nil},
		{ordered, "a\x00\x01\x80\x00\x01b\x00\x01c", nil},
	} {
		out := make([]value.Value, len(c.s.Fields))
		err := c.s.Decode([]byte(c.key), out)
		if (err == nil) != (c.want != nil) {
			t.Errorf("%q: %v", c.key, err)
		}
		for i := range c.want {
			if !value.Identical(out[i], c.want[i]) {
				t.Errorf("%q: field %d is %v, want %v", c.key, i, out[i], c.want[i])
			}
		}
		if err == nil && !out[1].IsNull() {
			prefix, ok := c.s.Prefix(out[:1])
			whole, wholeOK := c.s.Prefix(out)
			if !ok || !wholeOK || !strings.HasPrefix(c.key, string(prefix)) || !strings.HasPrefix(c.key, string(whole)) || len(whole) < len(prefix) {
				t.Errorf("%q: the prefixes are %q and %q", c.key, prefix, whole)
			}
		}
	}
}

// The keys of a view tell NULL from an empty text, and come back.
func TestViewKeys(t *testing.T) {
	t.Parallel()
	s := OfView([]Field{{Name: "a", Type: value.BytesType}, {Name: "n", Type: value.Int64Type}}, false)
	for want, values := range map[string][]value.Value{
		"6100017f":           {value.BytesOf("a"), value.Int64(-1)},
		"0000000180":         {value.Null, value.Int64(0)}, // NULL, 00 01, 80
		"00ff00010000":       {value.BytesOf(""), value.Null},
		"00ff00ff0001c100ff": {value.BytesOf("\x00"), value.Int64(256)},
		"6100ff620001bf":     {value.BytesOf("a\x00b"), value.Int64(63)},
	} {
		key, ok := s.Key(values)
		if got := hex.EncodeToString(key); got != want || !ok {
			t.Errorf("%v has the key %s, want %s", values, got, want)
		}
		back := make([]value.Value, len(values))
		if err := s.Decode(key, back); err != nil {
			t.Error(err)
		}
		for i := range back {
			if back[i].IsNull() != values[i].IsNull() || value.Compare(back[i], values[i]) != 0 {
				t.Errorf("%s comes back as %v, want %v", want, back, values)
			}
		}
	}
	whole := OfView([]Field{{Name: "_key", Type: value.BytesType}}, true)
	if key, ok := whole.Key([]value.Value{value.BytesOf("a\x00")}); !ok || string(key) != "a\x00" {
		t.Errorf("a whole key is %q", key)
	}
	if _, ok := whole.Key([]value.Value{value.Null}); ok {
		t.Error("NULL is a row key")
	}
}
