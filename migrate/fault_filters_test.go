package migrate

import (
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/migrate/report"
)

// A native read can select the rows that have a cell with a value, as a FilterExpression does,
// or only the cells with it.
func TestMapping_ValueFilters(t *testing.T) {
	t.Parallel()
	const filtered = `dynamodb: {op: Query, request: {KeyConditionExpression: "pk = :p", FilterExpression: "n = :n", ExpressionAttributeValues: {":p": {S: a}, ":n": {N: "2"}}}}`
	for _, c := range []struct{ name, pattern, want string }{
		{"where a value is", "id: p\n" + filtered + `
bigtable: {read: {prefix: "a#", filter: {where: {family: a, column: n, value: "2"}}}}
expect: {keys: [[a, "2"]]}`, ""},
		{"where it is not", "id: p\n" + filtered + `
bigtable: {read: {prefix: "a#", filter: {where: {family: a, column: n, value: "1"}}}}
expect: {keys: [[a, "2"]]}`, "native read"},
		{"in hex", `{id: p, bigtable: {read: {prefix: "a#", filter: {where: {family: a, column: n, value: "hex:32"}}}}, expect: {keys: [[a, "2"]]}}`, ""},
		{"in a range", `{id: p, bigtable: {read: {filter: {where: {family: a, column: n, valueStart: "2", valueEnd: "4"}}}, full_scan: true}, expect: {keys: [[a, "2"], [b, "1"]]}}`, ""},
		{"by a pattern", `{id: p, bigtable: {read: {filter: {where: {family: a, column: n, valuePattern: "[13]"}}}, full_scan: true}, expect: {keys: [[a, "1"], [b, "1"]]}}`, ""},
		{"where there is any", `{id: p, bigtable: {read: {prefix: "a#", filter: {where: {family: s.tags, column: x}}}}, expect: {keys: [[a, "1"]]}}`, ""},
		{"cells", `{id: p, bigtable: {read: {filter: {family: a, column: n, valueStart: "2"}}, full_scan: true}, expect: {keys: [[a, "2"], [b, "1"]]}}`, ""},
		{"one cell", `{id: p, bigtable: {read: {filter: {family: a, value: "3"}}, full_scan: true}, expect: {keys: [[b, "1"]]}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(patternFixture(c.pattern)), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				wantEqual(t, r)
				return
			}
			if len(r.Failures) == 0 || r.Failures[0].Kind != report.PatternDiffers || !strings.Contains(r.Failures[0].String(), c.want) {
				t.Errorf("failures %v, want one of the %s", r.Failures, c.want)
			}
		})
	}
	for pattern, want := range map[string]string{
		`{id: p, bigtable: {read: {filter: {value: "hex:3"}}}, expect: {count: 0}}`:                                   `the value "hex:3" is not hex`,
		`{id: p, bigtable: {read: {filter: {where: {family: a, column: n, valuePattern: "("}}}}, expect: {count: 0}}`: "valuePattern: error parsing regexp",
		`{id: p, bigtable: {read: {filter: {where: {column: n}}}}, expect: {count: 0}}`:                               `"family" is missing`,
	} {
		if _, err := Verify(t.Context(), newBigtableServer(t), OfFixture(patternFixture(pattern)), VerifyOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}
