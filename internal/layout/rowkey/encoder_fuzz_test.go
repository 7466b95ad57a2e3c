package rowkey

import (
	"bytes"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// FuzzEncoder checks that an encoder writes again all bytes that it decodes, and that no name
// of an encoder, and no bytes, cause a panic.
func FuzzEncoder(f *testing.F) {
	for _, name := range []string{
		"s", "n", "b", "hex", "b64u", "pad(3)", "nord", "i64", "ocint", "revmax", "revms(13)", "iso(s)", "iso(ms,Z)", "epoch(s)", "ver",
		"revdigits", "revdomain", "strip(a)", "const(a)", "salt(md5,7,2)", "hash(sha256)", "pad(", "salt(,,)", "strip())",
	} {
		f.Add(name, []byte("a1"))
		f.Add(name, []byte("001"))
		f.Add(name, []byte("2023-09-10T15:21:48"))
		f.Add(name, []byte("P3012"))
		f.Add(name, []byte{0x80})
	}
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		for _, operand := range []attr.Type{attr.Absent, attr.S, attr.N, attr.B} {
			e, err := ParseEncoder(name, operand)
			if err != nil {
				continue
			}
			if operand != attr.Absent && e.In != operand {
				t.Fatalf("encoder %s of %s takes %s", name, operand, e.In)
			}
			for _, v := range []attr.Value{attr.String(string(b)), attr.Binary(b), attr.Int(int64(len(b)))} {
				out, ok := e.EncodeKey(nil, v)
				if ok && e.Width > 0 && len(out) != e.Width {
					t.Fatalf("%s writes %d bytes, not %d", name, len(out), e.Width)
				}
				if back, decoded := e.DecodeKey(out); ok && !e.Derived && (!decoded || !attr.Equal(back, v)) {
					if v.Type == attr.S && !bytes.Equal(bytes.ToValidUTF8(b, nil), b) {
						continue // not text
					}
					t.Fatalf("%s writes %v as %q, which comes back as %v, %v", name, v, out, back, decoded)
				}
			}
			v, ok := e.DecodeKey(b)
			if !ok {
				continue
			}
			if again, ok := e.EncodeKey(nil, v); !ok || !bytes.Equal(again, b) {
				t.Fatalf("%s reads %q as %v, and writes it as %q, %v", name, b, v, again, ok)
			}
		}
	})
}
