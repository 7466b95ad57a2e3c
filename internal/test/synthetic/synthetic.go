// Package synthetic generates large tables of items with all ten types for tests and benchmarks.
// The same seed gives the same items.
//
//	err := synthetic.WriteLines(file, 1, 1_000_000)
package synthetic

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strconv"
)

// WriteLines writes n items as JSON lines, as in the data files of an export. Their key has two
// attributes (PK, SK), and a partition has a hundred items. The items contain scalars, sets, nested
// and empty documents, and a few values of an unusual type for their attribute. A line has about
// 700 bytes.
func WriteLines(w io.Writer, seed uint64, n int64) error {
	out := bufio.NewWriterSize(w, 1<<20)
	lines := json.NewEncoder(out)
	r := &source{rand.New(rand.NewPCG(seed, 0))}
	for i := range n {
		if err := lines.Encode(map[string]any{"Item": r.item(i)}); err != nil {
			return err
		}
	}
	return out.Flush()
}

// source draws items.
type source struct{ *rand.Rand }

// value is an attribute value in DynamoDB's JSON.
type value map[string]any

func (r *source) word() string { return strconv.FormatUint(r.Uint64(), 36) }

func str(s string) value { return value{"S": s} }

func num(n int) value { return value{"N": strconv.Itoa(n)} }

func binary(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func (r *source) item(i int64) map[string]value {
	partition := strconv.FormatInt(10_000_000+i/100, 10)
	item := map[string]value{
		"PK":      str("customer-" + partition[1:]),
		"SK":      num(int(i % 100)),
		"name":    str(r.word() + " " + r.word()),
		"price":   num(r.IntN(1_000_000) - 500_000),
		"active":  {"BOOL": r.IntN(2) == 0},
		"deleted": {"NULL": true},
		"hash":    {"B": binary(r.word())},
		"tags":    {"SS": []string{"a" + r.word(), "b" + r.word()}},
		"ratings": {"NS": []string{strconv.Itoa(r.IntN(5)), strconv.Itoa(5 + r.IntN(5))}},
		"events":  {"L": []value{str(r.word()), num(r.IntN(100)), {"M": map[string]value{"at": num(r.IntN(1_000_000))}}}},
		"address": {"M": map[string]value{"street": str(r.word()), "zip": num(10000 + r.IntN(90000)), "note": {"NULL": true}}},
	}
	switch r.IntN(20) {
	case 0:
		item["price"] = str("on request")
	case 1:
		item["events"] = value{"L": []value{}}
	case 2:
		item["address"] = value{"M": map[string]value{}}
	case 3:
		item["keys"] = value{"BS": []string{binary("x" + r.word()), binary("y" + r.word())}}
	}
	return item
}
