package source

import (
	"bufio"
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// The separators of Hive's text format. An export of a DynamoDB table without declared columns
// has one item per line, a map from each attribute to its value with a type tag of AWS Data
// Pipeline. Source: EMR release guide, "Exporting data from DynamoDB".
const (
	hiveMembers = "\x02"
	hiveValue   = "\x03"
)

// isHive reports whether a text begins with an item of Hive's format.
func isHive(text *bufio.Reader) bool {
	start, _ := text.Peek(512)
	name, value, found := bytes.Cut(start, []byte(hiveValue))
	return found && bytes.HasPrefix(value, []byte(`{"`)) && !bytes.ContainsAny(name, "\x01"+hiveMembers+"\n")
}

// refuseHive rejects a text with Hive's other control characters, which separate unnamed columns
// or the entries of maps.
func refuseHive(in *input) error {
	start, _ := in.text.Peek(512)
	if line, _, _ := bytes.Cut(start, []byte("\n")); !bytes.ContainsAny(line, "\x01"+hiveMembers+hiveValue) {
		return nil
	}
	return Damaged(Unsupported, Position{File: in.label}, nil,
		"the file is in Hive's format with control characters: rename it to *.csv and declare its columns (--csv-delimiter $'\\x01' --csv-header NAME:TYPE,...), or export the table to S3 as DynamoDB JSON")
}

// errNotHive means that a line is not an item in Hive's format.
var errNotHive = errors.New("not an item in Hive's format")

// appendHive appends a line of Hive's format as JSON.
func appendHive(dst, line []byte) ([]byte, error) {
	out := append(dst, '{')
	for member := range bytes.SplitSeq(line, []byte(hiveMembers)) {
		name, value, found := bytes.Cut(member, []byte(hiveValue))
		if !found || !jsontext.Value(value).IsValid() {
			return dst, errNotHive
		}
		if len(out) > len(dst)+1 {
			out = append(out, ',')
		}
		quoted, err := jsontext.AppendQuote(out, name)
		if err != nil {
			return dst, errNotHive
		}
		out = append(append(quoted, ':'), value...)
	}
	return append(out, '}'), nil
}
