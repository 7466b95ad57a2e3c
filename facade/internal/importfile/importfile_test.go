package importfile

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// pack compresses a text.
func pack(tb testing.TB, compression, text string) string {
	tb.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch compression {
	case Gzip:
		w = gzip.NewWriter(&b)
	case Zstd:
		z, err := zstd.NewWriter(&b)
		if err != nil {
			tb.Fatal(err)
		}
		w = z
	default:
		return text
	}
	_, err := io.WriteString(w, text)
	if err := errors.Join(err, w.Close()); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// read reads a file to its end: the results for the items, and the reason for the end.
func read(tb testing.TB, file string, o Options) (all []string, end error) {
	tb.Helper()
	r, err := Open(strings.NewReader(file), o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		item, err := r.Next()
		if bad, ok := errors.AsType[*ItemError](err); ok {
			all = append(all, "refused: "+bad.Error())
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, item.String())
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	keys := map[string]attr.Type{"n": attr.N, "b": attr.B}
	for _, c := range []struct {
		name string
		text string
		o    Options
		want []string
		end  string // "" for io.EOF
	}{
		{"lines", "{\"Item\":{\"a\":{\"S\":\"x\"}}}\r\n\n { \"Item\" : {\"a\":{\"N\":\"1.0\"}} } \n{\"Item\":{}}", Options{Format: FormatJSON}, []string{`{"a":{"S":"x"}}`, `{"a":{"N":"1"}}`, `{}`}, ""},
		{
			"refused items", `{"Item":{"a":{"N":"x"}}}` + "\n{}\n" + `{"Item":{},"b":1}` + "\n[1]\n" + `{"Item":{"a":{"S":"1"},"a":{"S":"2"}}}` + "\n" + `{"a":{"S":"x"}}`,
			Options{Format: FormatJSON},
			[]string{"refused: Item.a: not a number: \"x\"", `refused: the line is not {"Item": {…}}`, `refused: the line is not {"Item": {…}}`, `refused: the line is not {"Item": {…}}`, "refused: Item: member name \"a\" appears twice", `refused: the line is not {"Item": {…}}`},
			"",
		},
		{"garbage ends the file", `{"Item":{}}` + "\ngarbage\n" + `{"Item":{}}`, Options{Format: FormatJSON}, []string{"{}"}, "the line is not JSON"},
		{"objects on a line", `{"Item":{"a":{"S":"}{"}}}{"Item":{}} {"Item":{"a":{"N":"x"}}}{"Item":{}}`, Options{Format: FormatJSON}, []string{`{"a":{"S":"}{"}}`, `{}`, `refused: Item.a: not a number: "x"`, `{}`}, ""},
		{"objects over lines", "{\n  \"Item\": {\n    \"a\": {\"S\": \"x\"}\n  }\n}\n{\"Item\":\n{}}", Options{Format: FormatJSON}, []string{`{"a":{"S":"x"}}`, `{}`}, ""},
		{"a line too long", `{"Item":{"a":{"S":"` + strings.Repeat("x", MaxTextBytes) + `"}}}`, Options{Format: FormatJSON}, nil, "longer than 4194304 bytes"},
		{"nothing", "", Options{Format: FormatJSON}, nil, ""},
		{
			"ion", "$ion_1_0 {Item:{a:\"x\",n:1.5}}\n{Item:{s:$dynamodb_SS::[]}}\n{a:{}}\n{Item:{a:sym}}\n{Item:{}}",
			Options{Format: FormatIon},
			[]string{`{"a":{"S":"x"},"n":{"N":"1.5"}}`, "refused: Item.s: SS is empty", `refused: the line is not {"Item": {…}}`},
			"is not valid in an item",
		},
		{
			"csv", "a,n,b\n\"x,\"\"y\r\nz\",1.0,AA==\n,2,\n1,x,\n1\n1,2,3,4\n1,2,x",
			Options{Format: FormatCSV, Delimiter: ',', Types: keys},
			[]string{`{"a":{"S":"x,\"y\r\nz"},"b":{"B":"AA=="},"n":{"N":"1"}}`, `{"n":{"N":"2"}}`, `refused: column "n": not a number: "x"`, "refused: the record has 1 cells, but the header has 3", "refused: the record has 4 cells, but the header has 3", `refused: column "b": illegal base64 data at input byte 0`},
			"",
		},
		{"csv with a given header", "1|2", Options{Format: FormatCSV, Delimiter: '|', Header: []string{"x", "y"}}, []string{`{"x":{"S":"1"},"y":{"S":"2"}}`}, ""},
		{"csv, a column twice", "x,x\n1,2", Options{Format: FormatCSV, Delimiter: ','}, nil, `column "x" twice`},
		{"csv, an open quote", "x\n\"1", Options{Format: FormatCSV, Delimiter: ','}, nil, "has no closing quote"},
		{"csv, a record too long", "x\n" + strings.Repeat("1", MaxTextBytes+1), Options{Format: FormatCSV, Delimiter: ','}, nil, "too long"},
	} {
		for _, c.o.Compression = range []string{None, Gzip, Zstd} {
			t.Run(c.name+"/"+c.o.Compression, func(t *testing.T) {
				t.Parallel()
				got, err := read(t, pack(t, c.o.Compression, c.text), c.o)
				if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
				if (c.end == "") != errors.Is(err, io.EOF) || !strings.Contains(err.Error(), c.end) {
					t.Errorf("ended with %v, want %q", err, c.end)
				}
			})
		}
	}
}

func TestReader_OtherCompression(t *testing.T) {
	t.Parallel()
	const text = `{"Item":{}}`
	for _, is := range []string{None, Gzip, Zstd} {
		for _, said := range []string{None, Gzip, Zstd} {
			if got, err := read(t, pack(t, is, text), Options{Format: FormatJSON, Compression: said}); is != said && (len(got) > 0 || err == nil || errors.Is(err, io.EOF)) {
				t.Errorf("%s read as %s: %v, error %v", is, said, got, err)
			}
		}
	}
	whole := pack(t, Gzip, text)
	if _, err := read(t, whole[:len(whole)-3], Options{Format: FormatJSON, Compression: Gzip}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that ends early: error %v", err)
	}
	if got, err := read(t, whole+whole, Options{Format: FormatJSON, Compression: Gzip}); len(got) != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("two members: %v, error %v, want the item of each", got, err)
	}
}

// A small file that unpacks to many lines takes no more memory than a line may.
func TestReader_Bombs(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	for _, compression := range []string{Gzip, Zstd} {
		for _, c := range []struct {
			format, unit, want string
		}{
			{FormatJSON, "\n", "longer than"},
			{FormatJSON, "x", "longer than"},
			{FormatIon, " ", "longer than"},
			{FormatCSV, "\n", "too long"},
			{FormatCSV, "\"", "too long"},
			{FormatCSV, ",", "too long"},
		} {
			if compression == Zstd && c.format != FormatIon && !long.Enabled() {
				continue // the formats read what is unpacked, and so do not depend on the compression
			}
			// Both formats let one compressed stream follow another.
			var b bytes.Buffer
			var w io.WriteCloser = gzip.NewWriter(&b)
			if compression == Zstd {
				w, _ = zstd.NewWriter(&b)
			}
			_, err := w.Write(bytes.Repeat([]byte(c.unit), 1<<20))
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			r, err := Open(bytes.NewReader(bytes.Repeat(b.Bytes(), 5*MaxTextBytes>>20)), Options{Format: c.format, Compression: compression, Delimiter: ','})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = r.Next(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s of %s, %q: error %v", compression, c.format, c.unit, err)
			}
			if n := r.Bytes(); n > 3*MaxTextBytes {
				t.Errorf("%s of %s, %q: %d bytes were unpacked", compression, c.format, c.unit, n)
			}
			r.Close()
		}
	}
}

// The memory of a reader depends on the size of an item, not on that of the file.
func TestReader_Memory(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector counts in memory of its own")
	}
	memory.Alone(t, func(t *testing.T) {
		const itemBytes, items, most = 100 << 10, 200, 4 << 20
		lines := &repeated{line: []byte(`{"Item":{"a":{"S":"` + strings.Repeat("x", itemBytes) + `"}}}` + "\n"), left: items}
		r, err := Open(lines, Options{Format: FormatJSON})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n := 0
		if peak := memory.Peak(func() {
			for {
				if _, err := r.Next(); errors.Is(err, io.EOF) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
				n++
			}
		}); peak > most || n != items {
			t.Errorf("the peak of %d items of %d bytes is %d, want at most %d for %d", n, itemBytes, peak, most, items)
		}
	})
}

// repeated is a file with one line repeated.
type repeated struct {
	line, rest []byte
	left       int
}

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		r.left--
		r.rest = r.line
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// No file ends the process, or is read endlessly.
func FuzzReader(f *testing.F) {
	for _, text := range []string{`{"Item":{"a":{"S":"x"}}}`, "$ion_1_0 {Item:{a:\"x\",n:1.5}}", "a,n,b\n\"x,\"\"y\r\nz\",1.0,AA=="} {
		for i, compression := range []string{None, Gzip, Zstd} {
			f.Add([]byte(pack(f, compression, text)), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, how uint8) {
		o := Options{
			Format: []string{FormatJSON, FormatIon, FormatCSV}[how/3%3], Compression: []string{None, Gzip, Zstd}[how%3], Delimiter: ',',
			Types: map[string]attr.Type{"n": attr.N, "b": attr.B},
		}
		got, err := read(t, string(file), o)
		if err == nil {
			t.Errorf("%d items without an end", len(got))
		}
		if o.Compression == None && len(got) > len(file) {
			t.Errorf("%s items of %d bytes", strconv.Itoa(len(got)), len(file))
		}
	})
}
