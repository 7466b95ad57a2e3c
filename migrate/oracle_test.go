package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// An expectation that differs from DynamoDB's answer is also a difference of the oracle: for a
// read, a scan in any order, and the result of a write.
func TestVerify_Oracle(t *testing.T) {
	t.Parallel()
	const scan = "id: p\ndynamodb: {op: Scan}\n"
	for _, c := range []struct{ name, Pattern, want string }{
		{"as expected", "id: p\n" + queryA + "expect: {keys: [[a, '1'], [a, '2']]}", ""},
		{"other items", "id: p\n" + queryA + "expect: {keys: [[a, '1'], [b, '1']]}", "oracle: item 2 of 2 is another"},
		{"a scan", scan + "expect: {keys: [[a, '1'], [a, '2'], [b, '1']]}", ""},
		{"a scan of less", scan + "expect: {keys: [[a, '1'], [b, '1']]}", "oracle: 3 items, want 2; item 2 is another"},
		{"a refusal", "id: p\ndynamodb: {op: Query, request: {KeyConditionExpression: 'pk > :p'}}\nexpect: {count: 1}", "oracle: the request was refused"},
		{"a write", writeA + "bigtable: {write: {key: 'a#1', delete: true}, read: {prefix: 'a#'}}\nexpect: {keys: [[a, '1']]}", "oracle after its write: item 1 of 1 is another"},
		{"a refused write", strings.Replace(writeA, "DeleteItem", "PutItem", 1) + "bigtable: {write: {key: 'a#1', delete: true}, read: {prefix: 'a#'}}\nexpect: {keys: [[a, '2']]}", "oracle's write: the request was refused, oracle after its write: 2 items, want 1; item 1 is another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The next pattern finds the original items.
			r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(patternFixture(c.Pattern, "id: q\n"+queryA+"expect: {keys: [[a, '1'], [a, '2']]}")), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range r.Failures {
				if strings.HasPrefix(f.Detail, "oracle") {
					found = append(found, f.Detail)
				}
				if f.Pattern == "q" {
					t.Errorf("the pattern after it: %s", f)
				}
			}
			if got := strings.Join(found, ", "); got != c.want {
				t.Errorf("the oracle says %q, want %q\n%s", got, c.want, r.Text())
			}
		})
	}
}

// Foreign tables in the oracle's instance are left alone.
func TestVerify_OracleOfAnother(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	b := table.NewBigtable(conn, table.Options{Instance: "tabletop-oracle"})
	if _, err := b.MakeTable(t.Context(), "mine", []layout.Family{{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	_, err := Verify(t.Context(), conn, OfFixture(patternFixture("id: q\n"+queryA+"expect: {keys: [[a, '1'], [a, '2']]}")), VerifyOptions{})
	if err == nil || !strings.Contains(err.Error(), "the oracle's instance tabletop-oracle already has tables (mine)") {
		t.Errorf("error %v, want that the table exists", err)
	}
	if left, err := b.Tables(t.Context()); err != nil || !slices.Equal(left, []string{"mine"}) {
		t.Errorf("tables %v, error %v; want the one that was there", left, err)
	}
}

// The oracle skips items that DynamoDB would reject, and very many items.
func TestVerify_NoOracle(t *testing.T) {
	t.Parallel()
	files := patternFixture("id: q\n" + queryA + "expect: {keys: [[a, '1'], [a, '2']]}")
	for limit, want := range map[int]string{2: "3 items are more than 2", 3: ""} {
		r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Common: Common{knobs: table.Knobs{OracleItems: limit}}})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, r)
		if i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == "oracle" }); i >= 0 != (want != "") ||
			want != "" && (r.Checks[i].State != report.CheckSkipped || !strings.Contains(r.Checks[i].Detail, want)) {
			t.Errorf("with at most %d items, the checks are %+v, want %q", limit, r.Checks, want)
		}
	}
	if most := (table.Options{}).Normalized().OracleItems; most != 10_000 {
		t.Errorf("at most %d items without an option, want 10000", most)
	}
}
