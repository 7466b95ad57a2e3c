package source

import (
	"bufio"
	"bytes"
	"crypto/md5" //nolint:gosec // the checksum that the export format uses
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tabletop-emu/tabletop/internal/iontext"
	"github.com/tabletop-emu/tabletop/internal/itemtext"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// maxZstdWindow bounds the window of a zstd file, and so the memory to read it. It is the
// largest window of the zstd tool without extra flags.
const maxZstdWindow = 128 << 20

// packing is the compression of a file.
type packing string

const (
	packedGzip packing = "gzip"
	packedZstd packing = "zstd"
)

// input is one open file, decompressed if its content is gzip or zstd.
type input struct {
	label   string
	file    fs.File
	sum     hash.Hash     // MD5 of the bytes read from file
	size    int64         // of file; 0 if unknown
	read    counter       // bytes read from file
	raw     io.Reader     // file, summed and counted
	text    *bufio.Reader // the content
	packing packing       // "" if uncompressed
	ion     bool          // text is converted from Ion
	zstd    *zstd.Decoder // of a zstd file
}

// open opens a file. Its errors are Errors.
func (t tree) open(name string) (*input, error) {
	f, err := t.Open(name)
	if err != nil {
		return nil, Damaged(Unrecognized, Position{File: t.label(name)}, err, "cannot open the file")
	}
	in := &input{label: t.label(name), file: f, sum: md5.New()} //nolint:gosec // see the import
	if info, err := f.Stat(); err == nil {
		in.size = info.Size()
	}
	in.raw = io.TeeReader(f, io.MultiWriter(in.sum, &in.read))
	packed := bufio.NewReaderSize(in.raw, 64<<10)
	head, err := packed.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		in.close()
		return nil, in.failed(err, 0)
	}
	in.text = packed
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		in.packing = packedGzip
		z, err := gzip.NewReader(packed)
		if err != nil {
			in.close()
			return nil, in.failed(err, 0)
		}
		z.Multistream(false)
		in.text = bufio.NewReaderSize(&members{z, packed}, 64<<10)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		in.packing = packedZstd
		if in.zstd, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow)); err != nil {
			in.close()
			return nil, in.failed(err, 0)
		}
		in.text = bufio.NewReaderSize(in.zstd, 64<<10)
	}
	if what := unreadable(in.text); what != "" {
		in.close()
		return nil, Damaged(Unsupported, Position{File: in.label}, nil, "%s", what)
	}
	if start, _ := in.text.Peek(9); bytes.HasPrefix(start, []byte("\xef\xbb\xbf")) { // byte order mark
		if _, err := in.text.Discard(3); err != nil {
			in.close()
			return nil, in.failed(err, 0)
		}
	} else if bytes.HasPrefix(start, []byte(ionVersion)) {
		in.ion = true
		in.text = bufio.NewReaderSize(&convertedLines{from: in.text, convert: iontext.AppendJSON}, 64<<10)
	} else if isHive(in.text) {
		in.text = bufio.NewReaderSize(&convertedLines{from: in.text, convert: appendHive}, 64<<10)
	}
	return in, nil
}

// unreadable returns the error text of a known format that is not supported; "" for other
// content.
func unreadable(text *bufio.Reader) string {
	start, _ := text.Peek(512)
	if !bytes.ContainsFunc(start, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n", r) }) {
		return "" // text, such as a CSV file with a column called ORCID
	}
	for mark, what := range map[string]string{
		"PK\x03\x04": "the file is a zip archive: unpack it, and pass the file or the folder",
		"BZh":        "the file is compressed with bzip2, but only gzip and zstd can be read: unpack it with bunzip2",
		"\xfd7zXZ":   "the file is compressed with xz, but only gzip and zstd can be read: unpack it with unxz",
		"PAR1":       "the file is Parquet: convert it to JSON lines, which --plain reads",
		"ORC":        "the file is ORC: convert it to JSON lines, which --plain reads",
		"Obj\x01":    "the file is Avro: convert it to JSON lines, which --plain reads",

		"\xe0\x01\x00\xea":       "the file is in binary Ion: convert it to Ion text with one item per line (ion-cli), which is the form of exports",
		"\x04\x22\x4d\x18":       "the file is compressed with lz4, but only gzip and zstd can be read: unpack it with unlz4",
		"\xff\x06\x00\x00sNaPpY": "the file is compressed with Snappy, but only gzip and zstd can be read: unpack it",
		"SQLite format 3\x00":    "the file is a SQLite database, such as that of DynamoDB Local: start DynamoDB Local with it, and read the items with aws dynamodb scan --endpoint-url URL",
	} {
		if bytes.HasPrefix(start, []byte(mark)) {
			return what
		}
	}
	if len(start) > 262 && string(start[257:262]) == "ustar" {
		return "the file is a tar archive: unpack it (tar xf), and pass the file or the folder"
	}
	return ""
}

// members reads the members of a gzip file one after the other.
type members struct {
	z      *gzip.Reader
	packed *bufio.Reader
}

// errTrailing means that data after a gzip member is not another member.
var errTrailing = errors.New("trailing data")

// Read implements io.Reader over all members, one after another.
func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		head, err := m.packed.Peek(2)
		switch {
		case len(head) == 0:
			return 0, err
		case !bytes.Equal(head, []byte{0x1f, 0x8b}):
			return 0, errTrailing
		}
		if err := m.z.Reset(m.packed); err != nil {
			return 0, err
		}
		m.z.Multistream(false)
	}
}

// close closes the file, which was only read, so that errors do not matter.
func (in *input) close() {
	if in.zstd != nil {
		in.zstd.Close()
	}
	_ = in.file.Close()
}

// checksum reads the rest of the file and returns its MD5 in base64.
func (in *input) checksum() (string, error) {
	if _, err := io.Copy(io.Discard, in.raw); err != nil {
		return "", in.failed(err, 0)
	}
	return s3export.Checksum(in.sum.Sum(nil)), nil
}

// sum returns the MD5 of a file in base64.
func (t tree) sum(name string) (string, error) {
	f, err := t.Open(name)
	if err != nil {
		return "", Damaged(Unrecognized, Position{File: t.label(name)}, err, "cannot open the file")
	}
	in := &input{label: t.label(name), file: f, sum: md5.New()} //nolint:gosec // see the import
	defer in.close()
	in.raw = io.TeeReader(f, in.sum)
	return in.checksum()
}

// unpack reads a file to find faults of its compression.
func (t tree) unpack(name string) error {
	in, err := t.open(name)
	if err != nil {
		return err
	}
	defer in.close()
	if _, err := io.Copy(io.Discard, in.text); err != nil {
		return in.failed(err, 0)
	}
	return nil
}

// errTooLong means that the text of one item is longer than MaxItemBytes.
var errTooLong = errors.New("item text too long")

// failed converts an error of reading at a line to an Error. Errors of the file system stay
// unchanged, since they are not faults of the input.
func (in *input) failed(err error, line int) error {
	var known *Error
	at := Position{File: in.label}
	var syntactic *jsontext.SyntacticError
	var system *fs.PathError
	switch {
	case errors.As(err, &system):
		return fmt.Errorf("reading %s: %w", in.label, err)
	case errors.As(err, &known):
		return known
	case errors.Is(err, errTooLong):
		return Damaged(TooLong, Position{in.label, line}, nil, "the text of one item is longer than %d bytes, more than any DynamoDB item needs", MaxItemBytes)
	case errors.As(err, &syntactic):
		return Damaged(NotJSON, Position{in.label, line}, syntactic.Err, "not JSON")
	case errors.Is(err, errTrailing):
		return Damaged(PackingCorrupt, at, nil, "trailing data follows the gzip data")
	case in.packing != "" && errors.Is(err, io.ErrUnexpectedEOF):
		return Damaged(PackingTruncated, at, nil, "the %s data ends early: the file is truncated", in.packing)
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return Damaged(TooLong, at, nil, "the zstd data refers further back than %d MiB: compress it without --ultra --long", maxZstdWindow>>20)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		return Damaged(PackingCorrupt, at, nil, "the %s data is damaged: its own checksum does not match its content", in.packing)
	case in.packing != "":
		return Damaged(PackingCorrupt, at, err, "the %s data is damaged", in.packing)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Damaged(NotJSON, Position{in.label, line}, nil, "not JSON: the text ends early")
	}
	return Damaged(Unrecognized, at, err, "cannot read the file")
}

// lines reads the items of a text, or its lines.
type lines struct {
	in    *input
	texts itemtext.Reader
}

// lines returns a reader of the items of the input.
func (in *input) lines() *lines {
	return &lines{in: in, texts: itemtext.Reader{Text: in.text, MaxBytes: MaxItemBytes}}
}

// at returns the position of the last text read.
func (l *lines) at() Position { return Position{l.in.label, l.texts.Line()} }

// next returns the next line that is not blank, without surrounding space, and io.EOF after the
// last. The bytes are valid until the next call.
func (l *lines) next() ([]byte, error) {
	text, err := l.texts.Next()
	return text, l.failed(err)
}

// failed converts an error of texts to an Error, except for io.EOF.
func (l *lines) failed(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return err
	case errors.Is(err, itemtext.ErrBlank): // a few compressed bytes can expand to that
		return Damaged(TooLong, l.at(), nil, "more than %d bytes of white space between items", MaxItemBytes)
	case errors.Is(err, itemtext.ErrTooLong):
		err = errTooLong
	}
	return l.in.failed(err, l.texts.Line())
}

// appendLine appends the next line of a text, with its end if it has one. Errors: io.EOF if no
// text is left, errTooLong, and errors of reading.
func appendLine(dst []byte, text *bufio.Reader) ([]byte, error) {
	for {
		part, err := text.ReadSlice('\n')
		dst = append(dst, part...)
		switch {
		case len(dst) > MaxItemBytes:
			return dst, errTooLong
		case err == nil, errors.Is(err, io.EOF) && len(dst) > 0:
			return dst, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return dst, err
		}
	}
}

// document reads a file of one or more JSON texts that are not one per line, value by value. It
// tracks the line of each value, and rejects a value that is longer than any item.
type document struct {
	*jsontext.Decoder
	in       *input
	read     int64   // bytes handed to the decoder
	done     int64   // offset before which everything is processed
	newlines []int64 // offsets of line ends in [done, read)
	line     int     // lines that end before done
}

func newDocument(in *input) *document {
	d := &document{in: in}
	d.Decoder = jsontext.NewDecoder(reading{d})
	return d
}

// reading is the document as its decoder reads it.
type reading struct{ d *document }

// Read implements io.Reader; it fails with errTooLong if an item does not end.
func (r reading) Read(p []byte) (int, error) {
	d := r.d
	if d.read-d.done > MaxItemBytes {
		return 0, errTooLong
	}
	n, err := d.in.text.Read(p)
	for i := 0; i < n; {
		j := bytes.IndexByte(p[i:n], '\n')
		if j < 0 {
			break
		}
		i += j + 1
		d.newlines = append(d.newlines, d.read+int64(i))
	}
	d.read += int64(n)
	return n, err
}

// advance records that everything before offset is processed.
func (d *document) advance(offset int64) {
	i := 0
	for i < len(d.newlines) && d.newlines[i] <= offset {
		i++
	}
	d.newlines = d.newlines[:copy(d.newlines, d.newlines[i:])]
	d.line += i
	d.done = offset
}

// at returns the position of the last value, given its length.
func (d *document) at(length int) Position {
	d.advance(max(d.done, d.InputOffset()-int64(length)))
	return Position{File: d.in.label, Line: d.line + 1}
}

// failed is like input.failed, but uses the position of the decoder.
func (d *document) failed(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		d.advance(max(d.done, syntactic.ByteOffset))
	} else {
		d.advance(max(d.done, d.InputOffset()))
	}
	return d.in.failed(err, d.line+1)
}

// object reads an object, and calls member after each name in it; member must read the value.
func (d *document) object(member func(name string) error) error {
	return d.inside('{', func() error {
		tok, err := d.ReadToken()
		if err != nil {
			return d.failed(err)
		}
		return member(tok.String())
	})
}

// array reads an array, and calls element once for each element; element must read it.
func (d *document) array(element func() error) error { return d.inside('[', element) }

func (d *document) inside(open jsontext.Kind, each func() error) error {
	if err := d.want(open); err != nil {
		return err
	}
	for {
		if next := d.PeekKind(); next == '}' || next == ']' || next == 0 {
			if _, err := d.ReadToken(); err != nil { // never 0: the error of PeekKind
				return d.failed(err)
			}
			return nil
		}
		if err := each(); err != nil {
			return err
		}
		d.advance(max(d.done, d.InputOffset()))
	}
}

// want reads the next token, which must be of a kind.
func (d *document) want(kind jsontext.Kind) error {
	tok, err := d.ReadToken()
	if err != nil {
		return d.failed(err)
	}
	if tok.Kind() != kind {
		return Damaged(NotAnItem, d.at(1), nil, "found a JSON %s where %s begins", kindName(tok.Kind()), kindName(kind))
	}
	return nil
}

// skip skips the next value, of any size.
func (d *document) skip() error {
	next := d.PeekKind()
	if next == '{' {
		return d.object(func(string) error { return d.skip() })
	}
	if next == '[' {
		return d.array(d.skip)
	}
	if _, err := d.ReadToken(); err != nil {
		return d.failed(err)
	}
	return nil
}

// value reads the next value; it is valid until the next call.
func (d *document) value() (jsontext.Value, Position, error) {
	v, err := d.ReadValue()
	if err != nil {
		return nil, Position{}, d.failed(err)
	}
	return v, d.at(len(v)), nil
}

// text reads the next value, which must be a string.
func (d *document) text() (string, error) {
	tok, err := d.ReadToken()
	if err != nil {
		return "", d.failed(err)
	}
	if tok.Kind() != '"' {
		return "", Damaged(NotAnItem, d.at(1), nil, "found a JSON %s; expected a string", kindName(tok.Kind()))
	}
	return tok.String(), nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{', '}':
		return "object"
	case '[', ']':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	case 0:
	}
	return "value"
}
