package rowkey

import (
	"math"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// TestEncoders checks the encoders' bytes against the specification, with their inverses.
func TestEncoders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		enc, want string
		v         attr.Value
	}{
		{"pad(2)", "03", attr.Int(3)},
		{"pad(2)", "20", attr.Int(20)},
		{"revmax", "9223370611524018122", attr.Int(1425330757685)},
		{"revms(13)", "8305627524999", attr.Int(1694372475000)},
		{"revdigits", "54321", attr.String("12345")},
		{"revdomain", "com.google.maps", attr.String("maps.google.com")},
		{"i64", "\x7f\xff\xff\xff\xff\xff\xff\xff", attr.Int(-1)},
		{"i64", "\x80\x00\x00\x00\x00\x00\x00\x14", attr.Int(20)},
		{"nord", "O", attr.Int(0)},
		{"nord", "P3003", attr.Int(3)},
		{"nord", "P3012", attr.Int(20)},
		{"nord", "P2995", number(t, "0.5")},
		{"nord", "N69987~", number(t, "-1.2")},
		{"nord", "N699876~", number(t, "-1.23")},
		{"nord", "P1701", number(t, "1E-130")},
		{"hex", "00ff", attr.Binary([]byte{0, 255})},
		{"b64u", "AP8", attr.Binary([]byte{0, 255})},
		{"iso(s)", "2023-09-10T15:21:48", attr.String("2023-09-10T15:21:48")},
		{"epoch(ms)", "1423523569918", attr.Int(1423523569918)},
		{"ver", "12", attr.Int(12)},
		{"strip(Invoice-)", "0123", attr.String("Invoice-0123")},
		{"const(Video)", "Video", attr.String("Video")},
		// Ordered code, by hand from its definition.
		{"ocint", "\x80", attr.Int(0)},
		{"ocint", "\xbf", attr.Int(63)},
		{"ocint", "\xc0\x40", attr.Int(64)},
		{"ocint", "\x7f", attr.Int(-1)},
		{"ocint", "\x40", attr.Int(-64)},
		{"ocint", "\x3f\xbf", attr.Int(-65)},
		{"ocint", "\xe0\x20\x00", attr.Int(8192)},
		{"ocint", "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff", attr.Int(math.MaxInt64)},
		{"ocint", "\x00\x3f\x80\x00\x00\x00\x00\x00\x00\x00", attr.Int(math.MinInt64)},
	} {
		e, err := ParseEncoder(c.enc, c.v.Type)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := e.EncodeKey(nil, c.v)
		if !ok || string(got) != c.want {
			t.Errorf("%s(%s) = %q, %v; want %q", c.enc, c.v.Str, got, ok, c.want)
		}
		if back, ok := e.DecodeKey(got); !ok || !attr.Equal(back, c.v) {
			t.Errorf("%s: %q comes back as %v, %v", c.enc, got, back, ok)
		}
	}
	for _, bad := range []struct {
		enc string
		v   attr.Value
	}{
		{"pad(2)", attr.Int(100)},
		{"pad(2)", attr.Int(-1)},
		{"pad(2)", number(t, "0.5")},
		{"i64", number(t, "9223372036854775808")},
		{"revms(13)", attr.Int(10000000000000)},
		{"iso(s)", attr.String("2023-09-10T15:21:48+02:00")},
		{"iso(s)", attr.String("2023-09-31T15:21:48")},
		{"epoch(s)", attr.Int(1)},
		{"revdigits", attr.String("12a")},
		{"ocint", number(t, "9223372036854775808")},
		{"ver", attr.Int(-1)},
		{"strip(Invoice-)", attr.String("invoice-1")},
		{"const(Video)", attr.String("Videos")},
	} {
		e, err := ParseEncoder(bad.enc, bad.v.Type)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := e.EncodeKey(nil, bad.v); ok {
			t.Errorf("%s(%s) = %q; want it refused", bad.enc, bad.v.Str, got)
		}
	}
	for _, bad := range []string{
		"pad", "pad(0)", "pad(19)", "pad(02)", "iso", "iso(h)", "s(1)", "rot13", "", "pad(2", "revmax(3)", "strip", "strip()", "const()", "ver(1)", "ocint(8)",
		"salt", "salt(fnv1a32)", "salt(rot13,8,1)", "salt(fnv1a32,11,1)", "salt(fnv1a32,0,1)", "salt(fnv1a32,8,0)", "salt(fnv1a32,1001,4)", "hash()", "hash(rot13)",
	} {
		if e, err := ParseEncoder(bad, attr.Absent); err == nil {
			t.Errorf("encoder %q is accepted as %s", bad, e.Name)
		}
	}
}

// TestDerivedEncoders checks the output of salts and hashes, the salts against the
// specification.
func TestDerivedEncoders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		enc, want string
		v         attr.Value
	}{
		{"salt(fnv1a32,8,1)", "3", attr.String("u1")},
		{"salt(fnv1a32,8,1)", "6", attr.String("u2")},
		{"salt(fnv1a32,8,1)", "1", attr.String("u3")},
		{"salt(fnv1a32,15,2)", "05", attr.String("OE-ORDER1")},
		{"salt(md5,7,3)", "000", attr.String("")},
		{"hash(fnv1a32)", "811c9dc5", attr.String("")},
		{"hash(crc32)", "352441c2", attr.String("abc")},
		{"hash(md5)", "d41d8cd98f00b204e9800998ecf8427e", attr.Binary(nil)},
		{"hash(sha256)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", attr.String("abc")},
	} {
		e, err := ParseEncoder(c.enc, c.v.Type)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := e.EncodeKey(nil, c.v)
		if !ok || string(got) != c.want || len(got) != e.Width {
			t.Errorf("%s(%q) = %q, %v; want %q", c.enc, c.v.Str, got, ok, c.want)
		}
		if back, ok := e.DecodeKey(got); ok {
			t.Errorf("%s: %q comes back as %v", c.enc, got, back)
		}
	}
}

func number(t *testing.T, text string) attr.Value {
	t.Helper()
	v, err := attr.Number(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
