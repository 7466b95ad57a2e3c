package source

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/csvtext"
)

// CSVOptions describes the format of a CSV file. The zero value reads RFC 4180: fields
// are separated by commas, and the first record is the header.
type CSVOptions struct {
	// Delimiter is the character that separates fields. Default: a comma, or a tab for
	// .tsv files.
	Delimiter string
	// Header names the columns of a file that has no header record.
	Header []string
	// Ragged accepts records that are shorter than the header: their missing attributes
	// are absent. It also ignores empty cells after the last column.
	Ragged bool
	// QuotedEmpty is the meaning of a cell that contains "". It is EmptyValue (the
	// default) for an empty S or B, or EmptyAbsent for no attribute. An empty cell
	// without quotes always means that the attribute is absent.
	QuotedEmpty string
}

// Values of CSVOptions.QuotedEmpty.
const (
	EmptyValue  = "value"
	EmptyAbsent = "absent"
)

// csvSuffixes identify a CSV file, since its content looks like many other formats.
var csvSuffixes = []string{".csv", ".tsv"}

// isCSV reports whether a file is CSV by its name.
func isCSV(name string) bool {
	for _, suffix := range csvSuffixes {
		if path.Ext(unpackedName(name)) == suffix {
			return true
		}
	}
	return false
}

// unpackedName returns a file's name without the suffix of its compression.
func unpackedName(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// openCSV opens a file with one item per record. The header of a column is `name` or
// `name:TYPE`. Without a type, a column has the type in the table's key or the mapping's
// schema, or else S. In a cell, N is a number, B is base64, BOOL is true or false, and
// NULL is true. Sets are JSON arrays; L and M are DynamoDB JSON or plain JSON.
func openCSV(t tree, name string, o CSVOptions) (*Source, error) {
	table := &Table{Name: tableNameOf(name), Declared: -1, types: map[string]attr.Type{}, doubts: new(atomic.Pointer[[]string]), reading: new(atomic.Pointer[input])}
	invalid := func(format string, args ...any) (*Source, error) {
		return nil, Damaged(SchemaInvalid, Position{File: t.label(name)}, nil, format, args...)
	}
	delimiter := byte(',')
	switch {
	case o.Delimiter == "" && path.Ext(unpackedName(name)) == ".tsv":
		delimiter = '\t'
	case o.Delimiter == "":
	case len(o.Delimiter) != 1 || strings.ContainsAny(o.Delimiter, "\"\r\n"):
		return invalid("the CSV delimiter is %q, want one character that is neither a quote nor a line end", o.Delimiter)
	default:
		delimiter = o.Delimiter[0]
	}
	if o.QuotedEmpty != "" && o.QuotedEmpty != EmptyValue && o.QuotedEmpty != EmptyAbsent {
		return invalid("the setting for quoted empty cells is %q, want %s or %s", o.QuotedEmpty, EmptyValue, EmptyAbsent)
	}
	open := func() (*csvReader, []csvColumn, error) {
		in, err := t.open(name)
		if err != nil {
			return nil, nil, err
		}
		r := &csvReader{in, csvtext.Reader{Text: in.text, Delimiter: delimiter, MaxBytes: MaxItemBytes}}
		columns, err := r.header(o.Header)
		if err != nil {
			in.close()
			return nil, nil, err
		}
		return r, columns, nil
	}
	r, _, err := open() // to report a bad header at once
	if err != nil {
		return nil, err
	}
	r.in.close()
	table.entries = func(yield func(Entry, error) bool) {
		r, columns, err := open()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer r.in.close()
		table.reading.Store(r.in)
		defer table.reading.Store(nil)
		for i, c := range columns {
			if c.typ != attr.Absent {
				continue
			}
			for _, typ := range []attr.Type{table.types[c.name], table.keyType(c.name)} {
				if typ != attr.Absent {
					columns[i].typ = typ
				}
			}
		}
		texts := newColumnTexts(columns, o.Header == nil)
		for {
			e, err := r.entry(columns, o, texts)
			if errors.Is(err, io.EOF) {
				warnings := texts.warnings()
				table.doubts.Store(&warnings)
				return
			}
			if !yield(e, err) || err != nil && !OfItem(err) {
				return
			}
		}
	}
	return &Source{Format: "csv", Tables: []*Table{table}}, nil
}

// keyType returns the declared type of a key attribute, or Absent.
func (t *Table) keyType(name string) attr.Type {
	switch name {
	case t.Key.Hash.Name:
		return t.Key.Hash.Type
	case t.Key.Range.Name:
		return t.Key.Range.Type
	}
	return attr.Absent
}

type csvColumn struct {
	name string
	typ  attr.Type // Absent if the header has none
}

// csvReader reads records of a file.
type csvReader struct {
	in      *input
	records csvtext.Reader
}

// header returns the columns named in given or, if given is nil, in the first record.
func (r *csvReader) header(given []string) ([]csvColumn, error) {
	names, at := given, Position{r.in.label, 1}
	if given == nil {
		record, line, err := r.record()
		if errors.Is(err, io.EOF) {
			return nil, Damaged(Unrecognized, Position{File: r.in.label}, nil, "the file is empty: it has no header")
		}
		if err != nil {
			return nil, err
		}
		at.Line = line
		for _, c := range record {
			names = append(names, string(c.Text))
		}
	}
	hint := ""
	if given == nil {
		hint = headerHint(names)
	}
	seen := map[string]bool{}
	var columns []csvColumn
	for i, full := range names {
		c := csvColumn{name: full}
		if j := strings.LastIndexByte(full, ':'); j >= 0 {
			typ, ok := attr.ParseType(full[j+1:])
			if !ok {
				return nil, Damaged(SchemaInvalid, at, nil, "column %d is called %q: %q is not a type, want one of S N B BOOL NULL SS NS BS L M; a name with a colon needs its type%s", i+1, full, full[j+1:], hint)
			}
			c = csvColumn{full[:j], typ}
		}
		switch {
		case c.name == "":
			return nil, Damaged(SchemaInvalid, at, nil, "column %d has no name%s", i+1, hint)
		case seen[c.name]:
			return nil, Damaged(SchemaInvalid, at, nil, "two columns are called %q%s", c.name, hint)
		}
		seen[c.name] = true
		columns = append(columns, c)
	}
	return columns, nil
}

// entry reads the next record as an item, and counts its cells in texts; io.EOF after the last.
func (r *csvReader) entry(columns []csvColumn, o CSVOptions, texts *columnTexts) (Entry, error) {
	record, line, err := r.record()
	at := Position{r.in.label, line}
	if err != nil {
		return Entry{Position: at}, err
	}
	cells := record
	for o.Ragged && len(cells) > len(columns) && len(cells[len(cells)-1].Text) == 0 {
		cells = cells[:len(cells)-1]
	}
	switch {
	case len(cells) < len(columns) && !o.Ragged:
		return Entry{Position: at, Text: csvText(record)}, Damaged(NotCSV, at, nil, "the record has %d cells, but the header has %d columns; --csv-ragged reads the missing cells as absent attributes", len(record), len(columns))
	case len(cells) > len(columns):
		return Entry{Position: at, Text: csvText(record)}, Damaged(NotCSV, at, nil, "the record has %d cells, but the header has %d columns; a cell with the delimiter in its text needs quotes, and --csv-ragged ignores empty cells at the end", len(record), len(columns))
	}
	texts.add(cells)
	text := []byte{'{'}
	for i, cell := range cells {
		c := columns[i]
		if c.typ == attr.Absent {
			c.typ = attr.S
		}
		if len(cell.Text) == 0 && (!cell.Quoted || o.QuotedEmpty == EmptyAbsent) {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		if text, err = appendCSVCell(text, c, cell.Text); err != nil {
			return Entry{Position: at, Text: csvText(record)}, Damaged(ValueInvalid, at, err, "column %q, of type %s", c.name, c.typ)
		}
	}
	return parseEntry(append(text, '}'), sampleItem, at)
}

// csvText formats a record for a dead letter.
func csvText(record []csvtext.Cell) []byte {
	var b []byte
	for i, c := range record {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, bytes.ReplaceAll(c.Text, []byte{'"'}, []byte(`""`))...)
		b = append(b, '"')
	}
	return b
}

// appendCSVCell appends a cell as a member of an item in DynamoDB JSON.
func appendCSVCell(dst []byte, c csvColumn, text []byte) ([]byte, error) {
	dst, err := jsontext.AppendQuote(dst, c.name)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `:{"`...)
	dst = append(dst, c.typ.String()...)
	dst = append(dst, `":`...)
	switch c.typ {
	case attr.S, attr.N, attr.B:
		if dst, err = jsontext.AppendQuote(dst, text); err != nil {
			return nil, err
		}
	case attr.BOOL, attr.NULL:
		word := bytes.ToLower(text) // spreadsheets write TRUE
		if string(word) != "true" && (string(word) != "false" || c.typ == attr.NULL) {
			return nil, errors.New("the cell is neither true nor false")
		}
		dst = append(dst, word...)
	case attr.SS, attr.NS, attr.BS, attr.L, attr.M:
		v := jsontext.Value(text)
		if !v.IsValid() {
			return nil, errors.New("the cell is not JSON")
		}
		if c.typ == attr.NS { // [1, 2] as well as ["1", "2"]
			if dst, err = appendNumbers(dst, v); err != nil {
				return nil, err
			}
			break
		}
		dst = append(dst, v...)
	case attr.Absent:
	}
	return append(dst, '}'), nil
}

// appendNumbers appends an array of numbers as an array of strings.
func appendNumbers(dst []byte, v jsontext.Value) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '[' {
		return nil, errors.New("the cell is not a JSON array")
	}
	dst = append(dst, '[')
	for d.PeekKind() != ']' {
		member, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		if member.Kind() == '0' {
			dst = append(append(append(dst, '"'), member...), '"')
		} else {
			dst = append(dst, member...)
		}
	}
	return append(dst, ']'), nil
}

// record reads the next record that is not a blank line, and its first line number; io.EOF
// after the last.
func (r *csvReader) record() (cells []csvtext.Cell, line int, err error) {
	cells, line, err = r.records.Record()
	if invalid, ok := errors.AsType[*csvtext.SyntaxError](err); ok {
		return nil, line, Damaged(NotCSV, Position{r.in.label, invalid.Line}, nil, "%s", invalid.What)
	}
	switch {
	case errors.Is(err, csvtext.ErrTooLong):
		return nil, line, r.in.failed(errTooLong, line)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, line, r.in.failed(err, r.records.Line())
	}
	return cells, line, err
}
