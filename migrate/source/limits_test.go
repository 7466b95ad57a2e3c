package source

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// TestTable_Limits checks that keys up to DynamoDB's limits are read and longer ones are not,
// and that text that looks like a tag is text.
func TestTable_Limits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hash, sort int
		text       string
	}{
		{2048, 1024, ""},
		{2049, 1, `key attribute "PK" has 2049 bytes: DynamoDB allows at most 2048`},
		{1, 1025, `key attribute "SK" has 1025 bytes: DynamoDB allows at most 1024`},
	} {
		line := fmt.Sprintf(`{"PK":{"S":%q},"SK":{"S":%q},"BOOL":{"S":"{\"BOOL\":\"true\"}"},"b":{"BOOL":true}}`, strings.Repeat("p", c.hash), strings.Repeat("s", c.sort))
		src, err := OpenFS(fstest.MapFS{"in.json": {Data: []byte(line)}}, "in.json", Options{Key: "PK,SK"})
		if err != nil {
			t.Fatal(err)
		}
		for e, readErr := range src.Tables[0].Entries() {
			if err = readErr; err == nil {
				err = e.CheckSize(src.Tables[0].Key)
			}
		}
		if c.text == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		WantDamage(t, err, ItemBeyondLimit, c.text)
	}
}

// TestParseChange_PlainTime checks that the time of a change may be a plain string or number.
func TestParseChange_PlainTime(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"1680109764000000"`, `1680109764000000`} {
		c, err := parseChange([]byte(`{"Metadata":{"WriteTimestampMicros":`+text+`},"Keys":{"id":{"S":"a"}}}`), Position{"in", 1})
		if err != nil || c.micros != 1680109764000000 {
			t.Errorf("%s: %d, %v", text, c.micros, err)
		}
	}
}

func TestEntry_CheckSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[int]string{409_600 - 4: "", 409_600 - 3: "the item has 409601 bytes: DynamoDB allows at most 409600"} {
		e, err := parseEntry([]byte(`{"id":{"S":"x"},"x":{"S":"`+strings.Repeat("x", text)+`"}}`), plainItem, Position{"in", 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []Entry{e, {Item: e.Item, Position: e.Position}} { // read, and held without its text
			if err = e.CheckSize(attr.KeySchema{Hash: attr.KeyAttr{Name: "id", Type: attr.S}}); want != "" {
				WantDamage(t, err, ItemBeyondLimit, want)
			} else if err != nil {
				t.Error(err)
			}
		}
	}
}
