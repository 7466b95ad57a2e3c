package source

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/csvtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// columnText counts the cells of an untyped column that are more than text.
type columnText struct {
	cells int // nonempty
	kinds map[string]int
	shape string // the common shape of all cells; "" if two differ
}

// Kinds of cells that are more than text.
const (
	numberCells = "numbers"
	boolCells   = "true and false"
	arrayCells  = "JSON arrays"
	objectCells = "JSON objects"
)

// columnTypes is the probable type of a column of each kind, in header notation.
var columnTypes = map[string]string{numberCells: ":N", boolCells: ":BOOL", arrayCells: ":L, :SS or :NS", objectCells: ":M"}

// plainNumber matches numbers as DynamoDB writes them: 007 is a code, and would lose its zeros.
var plainNumber = sync.OnceValue(func() *regexp.Regexp { // large: it counts to 37
	return regexp.MustCompile(`^-?(0|[1-9][0-9]{0,37})(\.[0-9]{1,37})?([eE][-+]?[0-9]{1,3})?$`)
})

// cellKind returns the kind of a cell, "" for text.
func cellKind(text []byte) string {
	switch begin := bytes.TrimLeft(text, jsonSpace); {
	case plainNumber().Match(text):
		return numberCells
	case bytes.EqualFold(text, []byte("true")), bytes.EqualFold(text, []byte("false")):
		return boolCells
	case len(begin) == 0 || begin[0] != '[' && begin[0] != '{' || !jsontext.Value(text).IsValid():
		return ""
	case begin[0] == '[':
		return arrayCells
	}
	return objectCells
}

// add counts a cell.
func (c *columnText) add(text []byte) {
	if len(text) == 0 {
		return
	}
	if c.kinds == nil {
		c.kinds, c.shape = map[string]int{}, shapeOf(string(text))
	}
	c.cells++
	if kind := cellKind(text); kind != "" {
		c.kinds[kind]++
	}
	if c.shape != "" && c.shape != shapeOf(string(text)) {
		c.shape = ""
	}
}

// kind returns the common kind of all cells, or "".
func (c *columnText) kind() string {
	for kind, n := range c.kinds {
		if n == c.cells {
			return kind
		}
	}
	return ""
}

// digits matches the part in which two values of one form differ.
var digits = regexp.MustCompile(`[0-9]+`)

// shapeOf replaces each run of digits in a value; it returns "" for long values, and for values
// without digits.
func shapeOf(text string) string {
	if len(text) > 100 || !digits.MatchString(text) {
		return ""
	}
	return digits.ReplaceAllString(text, "#")
}

// valueNames matches texts that look like values rather than attribute names: a date, a UUID,
// an address.
var valueNames = sync.OnceValue(func() *regexp.Regexp { // large
	return regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[^@\s]+@[^@\s]+\.[^@\s]+|https?://.*)$`)
})

// likeValue reports whether the name of a column looks like a value.
func likeValue(name string) bool {
	return cellKind([]byte(name)) != "" || valueNames().MatchString(name)
}

// headerHint suggests how to read a file without a header if names look like values.
func headerHint(names []string) string {
	if i := slices.IndexFunc(names, likeValue); i >= 0 {
		return fmt.Sprintf("; %q looks like a value: if the file has no header, --csv-header names its columns", phrase.Clip(names[i]))
	}
	return ""
}

// columnTexts checks the untyped columns of a CSV file.
type columnTexts struct {
	columns []csvColumn
	texts   []*columnText // nil for a column with a type
	header  bool          // the names come from the first record of the file
}

func newColumnTexts(columns []csvColumn, header bool) *columnTexts {
	c := &columnTexts{columns, make([]*columnText, len(columns)), header}
	for i, column := range columns {
		if column.typ == attr.Absent {
			c.texts[i] = &columnText{}
		}
	}
	return c
}

// add counts the cells of a record.
func (c *columnTexts) add(record []csvtext.Cell) {
	for i, cell := range record[:min(len(record), len(c.texts))] {
		if c.texts[i] != nil {
			c.texts[i].add(cell.Text)
		}
	}
}

// warnings names the columns whose cells are probably not text, and a header that looks like a
// record.
func (c *columnTexts) warnings() (all []string) {
	var typed []string
	var value, example string
	for i, t := range c.texts {
		if t == nil {
			continue
		}
		name := c.columns[i].name
		if c.header && value == "" && (likeValue(name) || t.shape != "" && t.shape == shapeOf(name)) {
			value = name
		}
		if kind := t.kind(); kind != "" {
			if example == "" {
				first, _, _ := strings.Cut(columnTypes[kind], ",")
				example = phrase.Column(name) + first
			}
			typed = append(typed, fmt.Sprintf("%s (%s: %s)", phrase.Column(name), kind, columnTypes[kind]))
		}
	}
	if value != "" {
		all = append(all, fmt.Sprintf("the first record was read as the header, but the column name %s looks like a value: if the file has no header, --csv-header names its columns, and the first record is an item", strconv.Quote(phrase.Clip(value))))
	}
	if len(typed) > 0 {
		all = append(all, fmt.Sprintf("columns without a type are read as text, and these hold only numbers, booleans or JSON: %s; set the type in the header, or in --csv-header, as in %s",
			phrase.ClipTo(strings.Join(typed, ", "), 1000), example))
	}
	return all
}
