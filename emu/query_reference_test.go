package emu_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

var updateReference = flag.Bool("update.reference", false, "rewrite the declared differences of testdata/reference.tsv")

// referenceCatalog has the table of reference.tsv, whose columns are a key schema: an INT64 a and
// a BYTES s.
type referenceCatalog struct{}

func (referenceCatalog) Table(id string) (*analysis.Table, bool) {
	if !strings.EqualFold(id, "g") {
		return nil, false
	}
	ordered := &btapb.Type_Int64_Encoding{Encoding: &btapb.Type_Int64_Encoding_OrderedCodeBytes_{}}
	return &analysis.Table{Key: rowkey.New(&btapb.Type_Struct{
		Fields: []*btapb.Type_Struct_Field{
			{FieldName: "a", Type: &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{Encoding: ordered}}}},
			{FieldName: "s", Type: &btapb.Type{Kind: &btapb.Type_BytesType{BytesType: &btapb.Type_Bytes{}}}},
		},
		Encoding: &btapb.Type_Struct_Encoding{Encoding: &btapb.Type_Struct_Encoding_OrderedCodeBytes_{}},
	})}, true
}

func (referenceCatalog) View(string) (query string, ok bool) { return "", false }

func (referenceCatalog) Type(_, _, _ string) (of value.Type, version string, ok bool) {
	return of, "", false
}

// noSignature is an error whose argument types and candidates the reference writes in another form
// than the service.
var noSignature = regexp.MustCompile(`^(No matching signature for (?:operator|aggregate function|analytic function|function) (?:IS TRUE|IS FALSE|IN UNNEST|[^ ]+)) .*( \[at \d+:\d+\])$`)

// firstErrorLine returns the first line of an error with its position.
func firstErrorLine(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	if i := strings.LastIndex(rest, " [at "); i >= 0 {
		line += rest[i:]
	}
	return noSignature.ReplaceAllString(line, "$1$2")
}

// TestQuery_Reference compares errors with those of GoogleSQL's reference implementation. Each line of
// reference.tsv has a statement, its outcome there, and ours if it differs: Bigtable lacks the
// construct, or the text is not the same yet.
func TestQuery_Reference(t *testing.T) {
	t.Parallel()
	const file = "internal/sql/analysis/testdata/reference.tsv"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options := analysis.Options{
		Catalog: referenceCatalog{},
		Params:  map[string]value.Type{"p": value.Int64Type, "q": value.Int64Type},
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "//") {
			out.WriteString(line + "\n")
			continue
		}
		statement, outcomes, _ := strings.Cut(line, "\t")
		want, declared, differs := strings.Cut(outcomes, "\t")
		if !differs {
			declared = want
		}
		got := "ok"
		if _, err := analysis.Analyze(statement, options); err != nil {
			got = firstErrorLine(err.Error())
		}
		out.WriteString(statement + "\t" + want)
		if got != want {
			out.WriteString("\t" + got)
		}
		out.WriteString("\n")
		if got != declared && !*updateReference {
			t.Errorf("%s\n      got %s\n declared %s\nreference %s", statement, got, declared, want)
		}
	}
	if *updateReference {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
