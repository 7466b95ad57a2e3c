// Package importfile reads the files that ImportTable and StartBulkPutItems accept:
// consecutive objects of DynamoDB JSON, Ion text with one item per line, and CSV. They
// can be uncompressed, gzip or zstd. Source: developer guide, "DynamoDB data import from
// Amazon S3: how it works" and "S3 import formats for DynamoDB".
//
// It streams items. Memory use is bounded by the longest item and the decompression
// window, regardless of the size of the unpacked file. Every input results in items, in
// an [*ItemError], after which reading continues, or in another error, after which
// reading ends.
//
// It does not check whether an item fits the key of a table.
package importfile

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/csvtext"
	"github.com/tabletop-emu/tabletop/internal/iontext"
	"github.com/tabletop-emu/tabletop/internal/itemtext"
)

// Formats and compressions, in the words of the API.
const (
	FormatJSON = "DYNAMODB_JSON"
	FormatIon  = "ION"
	FormatCSV  = "CSV"

	Gzip = "GZIP"
	Zstd = "ZSTD"
	None = "NONE"
)

const (
	// MaxTextBytes is the maximum length of an item's text. An item of 400 KB needs less.
	MaxTextBytes = 4 << 20

	// maxZstdWindow is the maximum window of a zstd file, and about the memory of reading
	// one. The zstd tool exceeds it only with --ultra and --long.
	maxZstdWindow = 16 << 20
)

// Options describes a file.
type Options struct {
	Format      string
	Compression string
	// Delimiter and Header apply to CSV. If Header is empty, the first record is the
	// header.
	Delimiter byte
	Header    []string
	// Types holds the types of those CSV columns that are not strings, such as keys.
	Types map[string]attr.Type
}

// ItemError is the error for a malformed item. Reading can continue after the item.
type ItemError struct{ Err error }

// Error describes the fault in the item.
func (e *ItemError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *ItemError) Unwrap() error { return e.Err }

var (
	errTooLong = fmt.Errorf("the text of an item is longer than %d bytes", MaxTextBytes)
	errNotItem = errors.New(`the line is not {"Item": {…}}`)
)

// Reader reads the items in a file. It is not safe for concurrent use.
type Reader struct {
	o       Options
	text    *bufio.Reader
	read    counter
	zstd    *zstd.Decoder // nil: another compression
	texts   itemtext.Reader
	json    []byte // the item of an Ion line, as JSON
	records csvtext.Reader
	header  []string
}

// counter counts the bytes read.
type counter struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// Open returns a Reader for a file. Errors come from the decompressor or from the file.
// The caller must close both the Reader and the file.
func Open(file io.Reader, o Options) (*Reader, error) {
	r := &Reader{o: o, header: o.Header}
	r.read.Reader = file
	switch o.Compression {
	case Gzip:
		z, err := gzip.NewReader(file)
		if err != nil {
			return nil, fmt.Errorf("reading gzip: %w", err)
		}
		r.read.Reader = z
	case Zstd:
		z, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, fmt.Errorf("reading zstd: %w", err)
		}
		r.zstd, r.read.Reader = z, z
	}
	const buffered = 64 << 10
	r.text = bufio.NewReaderSize(&r.read, buffered)
	r.texts = itemtext.Reader{Text: r.text, MaxBytes: MaxTextBytes}
	r.records = csvtext.Reader{Text: r.text, Delimiter: o.Delimiter, MaxBytes: MaxTextBytes}
	return r, nil
}

// Close releases the decompressor.
func (r *Reader) Close() {
	if r.zstd != nil {
		r.zstd.Close()
	}
}

// Bytes returns the number of uncompressed bytes consumed so far.
func (r *Reader) Bytes() int64 { return r.read.n - int64(r.text.Buffered()) }

// Next returns the next item, or io.EOF after the last one.
func (r *Reader) Next() (item attr.Item, err error) {
	switch r.o.Format {
	case FormatCSV:
		return r.record()
	case FormatIon:
		var line []byte
		if line, err = r.texts.Next(); err != nil {
			break
		}
		if r.json, err = iontext.AppendJSON(r.json[:0], line); err == nil {
			item, err = parse(r.json)
		}
	default:
		err = r.texts.Item(func(text []byte) (err error) {
			item, err = parse(text)
			return err
		})
	}
	if errors.Is(err, itemtext.ErrTooLong) || errors.Is(err, itemtext.ErrBlank) {
		err = errTooLong
	}
	return item, err
}

// parse reads an item of DynamoDB JSON.
func parse(line []byte) (attr.Item, error) {
	const begin, end = `{"Item":`, "}"
	if body, ok := bytes.CutPrefix(line, []byte(begin)); ok {
		if item, err := attr.UnmarshalItem(bytes.TrimSuffix(body, []byte(end))); err == nil && bytes.HasSuffix(body, []byte(end)) {
			return item, nil
		}
	}
	if !jsontext.Value(line).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, errors.New("the line is not JSON")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(line))
	for _, want := range []string{"{", "Item"} {
		if token, err := d.ReadToken(); err != nil || token.String() != want {
			return nil, &ItemError{errNotItem}
		}
	}
	item, err := attr.DecodeItem(d)
	if err != nil {
		return nil, &ItemError{err}
	}
	if token, err := d.ReadToken(); err != nil || token.Kind() != '}' {
		return nil, &ItemError{errNotItem}
	}
	return item, nil
}

// record reads a CSV record.
func (r *Reader) record() (attr.Item, error) {
	if r.header == nil {
		cells, _, err := r.records.Record()
		if err != nil {
			return nil, err
		}
		for _, c := range cells {
			r.header = append(r.header, string(c.Text))
		}
	}
	cells, _, err := r.records.Record()
	switch {
	case err != nil:
		return nil, err
	case len(cells) != len(r.header):
		return nil, &ItemError{fmt.Errorf("the record has %d cells, but the header has %d", len(cells), len(r.header))}
	}
	item := make(attr.Item, len(cells))
	for i, c := range cells {
		name := r.header[i]
		if _, twice := item[name]; twice || name == "" {
			return nil, fmt.Errorf("the header has the column %q twice, or an empty name", name)
		}
		if len(c.Text) == 0 {
			continue
		}
		if item[name], err = r.cell(name, string(c.Text)); err != nil {
			return nil, &ItemError{fmt.Errorf("column %q: %w", name, err)}
		}
	}
	return item, nil
}

// cell returns the value of a cell.
func (r *Reader) cell(name, text string) (attr.Value, error) {
	switch r.o.Types[name] {
	case attr.N:
		n, err := attr.ParseNumber(text)
		return attr.Value{Type: attr.N, Str: n}, err
	case attr.B:
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		return attr.Binary(raw), err
	case attr.Absent, attr.S, attr.BOOL, attr.NULL, attr.SS, attr.NS, attr.BS, attr.L, attr.M: // keys have no other types
	}
	return attr.String(text), nil
}
