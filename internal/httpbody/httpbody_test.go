package httpbody_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tabletop-emu/tabletop/internal/httpbody"
)

// A body is read completely, whatever its announced size and its pieces, up to the limit.
func TestRead(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	arrivals := map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "with its end": iotest.DataErrReader, "in halves": iotest.HalfReader,
	}
	for _, size := range []int64{0, 1, 511, 512, 513, 64<<10 - 1, 64 << 10, 64<<10 + 1, 200_000, most - 1, most, most + 1} {
		text := bytes.Repeat([]byte("0123456789"), int(size/10+1))[:size]
		for _, hint := range []int64{-1, 0, 1, size - 1, size, size + 1, 1 << 40} {
			for how, arriving := range arrivals {
				got, err := httpbody.Read(arriving(bytes.NewReader(text)), hint, most)
				if size > most {
					if !errors.Is(err, httpbody.ErrTooLarge) {
						t.Errorf("%d bytes %s, announced as %d: %v", size, how, hint, err)
					}
				} else if err != nil || !bytes.Equal(got, text) {
					t.Errorf("%d bytes %s, announced as %d: %d, %v", size, how, hint, len(got), err)
				}
			}
		}
	}
	broken := errors.New("broken")
	if _, err := httpbody.Read(iotest.ErrReader(broken), 10, most); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// counting records the largest buffer that it was given.
type counting struct {
	io.Reader
	most int
}

func (c *counting) Read(p []byte) (int, error) {
	c.most = max(c.most, len(p))
	return c.Reader.Read(p)
}

// A body that is announced as large, and does not arrive, takes little memory.
func TestRead_Said(t *testing.T) {
	t.Parallel()
	c := &counting{Reader: strings.NewReader("{")}
	if got, err := httpbody.Read(c, 16<<20, 16<<20); string(got) != "{" || err != nil || c.most > 64<<10+1 {
		t.Errorf("%q, %v; was given %d bytes", got, err, c.most)
	}
}

func BenchmarkRead(b *testing.B) {
	for _, size := range []int64{150, 5000, 400 << 10, 16 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size)
			text := make([]byte, size)
			for b.Loop() {
				if _, err := httpbody.Read(iotest.DataErrReader(bytes.NewReader(text)), size, 16<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Each coding is decoded again, up to the limit.
func TestEncode_Decode(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("text ", 1000))
	for _, coding := range []string{"gzip", "deflate"} {
		packed, err := httpbody.Encode(coding, text)
		if err != nil || len(packed) >= len(text) {
			t.Fatalf("%s: %d bytes, %v", coding, len(packed), err)
		}
		got, err := httpbody.Decode(" "+strings.ToUpper(coding)+" ", packed, int64(len(text)))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes, %v", coding, len(got), err)
		}
		if _, err := httpbody.Decode(coding, packed, int64(len(text))-1); !errors.Is(err, httpbody.ErrTooLarge) {
			t.Errorf("%s, a byte too many: %v", coding, err)
		}
		if _, err := httpbody.Decode(coding, packed[:len(packed)/2], 1<<20); err == nil {
			t.Errorf("%s: half of it is taken", coding)
		}
	}
	if got, err := httpbody.Decode("identity", text, 1); err != nil || !bytes.Equal(got, text) {
		t.Errorf("identity: %d bytes, %v", len(got), err)
	}
	if _, err := httpbody.Encode("br", text); err == nil {
		t.Error("br is known")
	}
}

// AWS's choice of a coding for a header.
func TestNumbers_Accepted(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "identity": "", "br": "", "zstd": "", "compress": "", "x-gzip": "", "gzip": "gzip", "deflate": "deflate",
		"gzip, deflate": "gzip", "br, identity, deflate, gzip": "deflate", "GZIP, identity": "gzip", "dog, gzip ,, cat": "gzip",
		"gzip;q=0.8, deflate;q=0.5": "gzip", "deflate, GZIP;q=0.5": "deflate", "deflate;q=0.5, gzip;q=0.2": "deflate",
		"br, gzip;q=0, deflate; q = 0.5 , identity;q=0": "deflate",
		// Codings that the header does not name.
		"*": "gzip", "*, deflate;q=0.5": "gzip", "*, deflate": "deflate", "*, identity": "gzip", "*, gzip;q=0.5": "deflate",
		"*;q=0": "", "*;q=0.5,identity": "gzip", "br;q=0.8,identity;q=0.5,*;q=0": "",
		"gzip;q=0": "", "gzip ;q=0": "", "gzip; q=0.00, deflate": "deflate", "gzip;q=0.01": "gzip", "identity;q=0": "",
		"gzip;q=0.5,identity;q=0.8": "gzip", "br,identity;q=0.5,gzip;q=0.0001": "gzip",
		// Malformed headers.
		`"gzip"`: "", "gzip br": "", "gzip:q=1": "", "deflate;q=0.5, gzip;q=31": "gzip", "gzip;q=31,deflate;q=51": "gzip",
		"deflate;q=0.5, gzip;q=1;q=0.2": "gzip", "deflate;q=0.5,gzip;q=0.": "deflate", "deflate;q=0.5,gzip;q=0.x": "gzip",
		"deflate;q=0.5,gzip;q=0. x": "gzip", "deflate;q=-0.5,gzip;q=0.2": "gzip", "deflate;q=-0.5": "", "gzip;q= 0;q=1": "", "gzip;q =0;q=1": "gzip",
		"gzip; q=0;q=1": "", "gzip;nq=0;q=1": "", "gzip;q=0, gzip;q=1, gzip;q=0": "gzip", "deflate;q=0.5,gzip;q=NaN": "gzip",
	} {
		if got := httpbody.Accepted(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

// Text without repetitions is compressed too, if it has few different characters.
func TestNumbers_RandomLetters(t *testing.T) {
	t.Parallel()
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 200<<10)
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	for _, coding := range []string{"gzip", "deflate"} {
		packed, err := httpbody.Encode(coding, text)
		if err != nil || len(packed)*3 > len(text)*2 {
			t.Errorf("%s: %d bytes, %v; want two thirds of %d at most", coding, len(packed), err, len(text))
		}
		if got, err := httpbody.Decode(coding, packed, int64(len(text))); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: unpacked %d bytes, %v", coding, len(got), err)
		}
	}
}
