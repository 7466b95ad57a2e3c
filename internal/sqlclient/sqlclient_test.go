package sqlclient_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

// TestMark marks the place of an error in its line.
func TestMark(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct{ query, text, want string }{
		"one line":         {"SELECT a FROM t", "Unrecognized name: a [at 1:8]", "SELECT a FROM t\n       ^"},
		"the second line":  {"SELECT *\r\nFROM t", "Table not found: t [at 2:6]", "FROM t\n     ^"},
		"a tab":            {"SELECT\ta", "Unrecognized name: a [at 1:9]", "SELECT  a\n        ^"},
		"another alphabet": {"SELECT 'ë', a", "Unrecognized name: a [at 1:13]", "SELECT 'ë', a\n            ^"},
		"the end":          {"SELECT", "Unexpected end of statement [at 1:7]", "SELECT\n      ^"},
		"a long line":      {long + "a" + long, "x [at 1:201]", long[:60] + "a" + long[:59] + "\n" + strings.Repeat(" ", 60) + "^"},
		"a control":        {"\x1bSELECT", "x [at 1:1]", " SELECT\n^"},
		"no place":         {"SELECT 1", "the query is too slow", ""},
		"a line too many":  {"SELECT 1", "x [at 2:1]", ""},
		"a huge number":    {"SELECT 1", "x [at 99999999999999999999999:1]", ""},
		"a large column":   {"SELECT 1", "x [at 1:1000]", "SELECT 1\n        ^"},
	} {
		if got := sqlclient.Mark(c.query, errors.New(c.text)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestParam_Bytes: bytes are those of the text, or of a literal with escapes.
func TestParam_Bytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"c1":                 "c1",
		`a\x00`:              `a\x00`,
		"b'":                 "b'",
		"b'c1":               "b'c1",
		"b''":                "",
		`b'c1\x00\x01o1'`:    "c1\x00\x01o1",
		`b'\xff\\\'\n\001ë'`: "\xff\\'\n\x01ë",
		"b'\xff'":            "\xff",
	} {
		v, err := sqlclient.Param("BYTES", text)
		if err != nil || string(v.GetBytesValue()) != want {
			t.Errorf("%s is %q, %v, want %q", text, v.GetBytesValue(), err, want)
		}
	}
	for _, text := range []string{`b'\x0'`, `b'\'`, "b'''", `b'\q'`, `b'\u00eb'`} {
		if v, err := sqlclient.Param("BYTES", text); err == nil || err.Error() != fmt.Sprintf("%q is not of type BYTES", text) {
			t.Errorf("%s is %v, %v", text, v, err)
		}
	}
	const raw = "\xff'\\\x00" // what the program prints is a parameter again
	if v, err := sqlclient.Param("BYTES", sqlclient.Printable(raw)); err != nil || string(v.GetBytesValue()) != raw {
		t.Errorf("%q is %q, %v", raw, v.GetBytesValue(), err)
	}
}

// TestParam_Arrays: an array is in JSON, with the texts of its elements.
func TestParam_Arrays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`array<bytes>=["a","b'\\xff'"]`:               `[a, b'\xff']`,
		`ARRAY<STRING>=["a","\u00e9"]`:                "[a, é]",
		`ARRAY<INT64>=[1, "-9007199254740993"]`:       "[1, -9007199254740993]",
		`ARRAY<FLOAT64>=[0.5]`:                        "[0.5]",
		`ARRAY<BOOL>=[true]`:                          "[true]",
		`ARRAY<DATE>=["2024-02-29"]`:                  "[2024-02-29]",
		`ARRAY<TIMESTAMP>=["2024-01-01T00:00:00.5Z"]`: "[2024-01-01T00:00:00.5Z]",
		`ARRAY<INT64>=[]`:                             "[]",
	} {
		_, v, err := sqlclient.ParseParam("k:" + text)
		kind, _, _ := strings.Cut(text, "=")
		if err != nil || sqlclient.Text(v, v.GetType()) != want || sqlclient.TypeText(v.GetType()) != strings.ToUpper(kind) {
			t.Errorf("%s is %v, %v, want %s", text, v, err, want)
		}
	}
	for text, want := range map[string]string{
		"ARRAY<INT64>=1":                   `k: "1" is not a JSON array, such as ["a", "b"]`,
		`ARRAY<INT64>=["a"]`:               `k: "a" is not of type INT64`,
		"ARRAY<INT64>=[null]":              `k: "null" is not of type INT64`,
		"ARRAY<ARRAY<INT64>>=[[1]]":        `k: "ARRAY<INT64>" is not a type of a parameter; expected STRING, BYTES`,
		"ARRAY<STRING>=[null]":             "k: null is not of type STRING",
		"ARRAY<JSON>=[]":                   `k: "JSON" is not a type of a parameter`,
		"DATE=2024-02-30":                  `k: "2024-02-30" is not of type DATE, such as 2024-01-31`,
		"TIMESTAMP=2024-01-01 00:00:00":    `k: "2024-01-01 00:00:00" is not of type TIMESTAMP, such as 2024-01-31T12:00:00Z`,
		"ARRAY<TIMESTAMP>=[\"yesterday\"]": `k: "yesterday" is not of type TIMESTAMP`,
	} {
		if _, v, err := sqlclient.ParseParam("k:" + text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s is %v, %v, want %s", text, v, err, want)
		}
	}
}

// TestParamOf: a Go value becomes a parameter of its type, as its text does.
func TestParamOf(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		text string
		v    any
	}{
		"STRING": {"a", "a"}, "BYTES": {"a", []byte("a")}, "INT64": {"-3", -3}, "FLOAT64": {"0.5", 0.5}, "BOOL": {"true", true},
		"DATE": {"2024-02-29", civil.Date{Year: 2024, Month: 2, Day: 29}}, "TIMESTAMP": {"2024-01-01T02:00:00+02:00", time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		want, err := sqlclient.Param(kind, c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sqlclient.ParamOf(c.v); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", kind, got, err, want)
		}
	}
	list, err := sqlclient.ParamOf([][]byte{[]byte("a"), []byte("b")})
	if err != nil || sqlclient.TypeText(list.GetType()) != "ARRAY<BYTES>" || sqlclient.Text(list, list.GetType()) != "[a, b]" {
		t.Errorf("a list is %v, %v", list, err)
	}
	at, err := sqlclient.ParamOf(time.Unix(1, 0))
	if err != nil || sqlclient.TypeText(at.GetType()) != "TIMESTAMP" || sqlclient.Text(at, at.GetType()) != "1970-01-01T00:00:01Z" {
		t.Errorf("a time is %v, %v", at, err)
	}
	for _, v := range []any{nil, struct{}{}, []any{"a"}, map[string]int{}, int8(1)} {
		if p, err := sqlclient.ParamOf(v); err == nil || p != nil {
			t.Errorf("%T is %v", v, p)
		}
	}
}
