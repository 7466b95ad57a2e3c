package infer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// schemaOf describes a table with global indexes on attribute g.
func schemaOf(table, more string, indexes ...string) []byte {
	var all []string
	for _, name := range indexes {
		all = append(all, fmt.Sprintf(`{"IndexName":%q,"KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}`, name))
	}
	return fmt.Appendf(nil, `{"Table":{"TableName":%q,"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"g","AttributeType":"S"}],
		"GlobalSecondaryIndexes":[%s]}%s}`, table, strings.Join(all, ","), more)
}

// An index whose table name Bigtable does not allow gets a shorter one.
func TestInfer_LongIndexNames(t *testing.T) {
	t.Parallel()
	const long = "orders-of-all-customers-by-day"
	indexes := []string{"GSI1", "customer-and-status-of-the-order-by-date", "customer-and-status-of-the-order-by-name", strings.Repeat("x", 255)}
	in, err := inferred(t, `{"id":{"S":"1"},"g":{"S":"a"}}`, source.Options{TableSchema: schemaOf(long, "", indexes...)})
	if err != nil {
		t.Fatal(err)
	}
	m := (*layout.Mapping)(in.Mapping)
	var tables []string
	for _, x := range m.Indexes() {
		tables = append(tables, x.TargetTable())
		if len(x.TargetTable()) > mapfile.MaxTableIDChars {
			t.Errorf("index %s is in table %s of %d characters", x.Name(), x.TargetTable(), len(x.TargetTable()))
		}
		i := slices.IndexFunc(in.Choices, func(c Choice) bool { return c.What == "index "+x.Name() })
		if i < 0 || in.Choices[i].Chosen != "table "+x.TargetTable() {
			t.Errorf("the choices do not name table %s of index %s: %v", x.TargetTable(), x.Name(), in.Choices)
		}
	}
	if len(tables) != len(indexes) || len(slices.Compact(slices.Sorted(slices.Values(tables)))) != len(indexes) {
		t.Fatalf("the tables of %d indexes are %v", len(indexes), tables)
	}
	if tables[0] != long+"__GSI1" {
		t.Errorf("a name that fits has become %s", tables[0])
	}
	// The written mapping file is equivalent.
	text, err := in.Mapping.Spec().YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := layout.Load("mapping.yaml", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for i, x := range again.Indexes() {
		if x.TargetTable() != tables[i] {
			t.Errorf("index %s is in %s when the file is read, not in %s", x.Name(), x.TargetTable(), tables[i])
		}
	}
}

// Attributes beyond the limit cause a warning.
func TestInfer_MoreAttributesThanTold(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{maxSchemaNames - 1: 0, maxSchemaNames + 5: 1} {
		var b strings.Builder
		b.WriteString(`{"id":{"S":"1"}`)
		for i := range n {
			fmt.Fprintf(&b, `,"a%d":{"N":"1"}`, i)
		}
		in, err := inferred(t, b.String()+"}", source.Options{Key: "id"})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(in.Warnings); got != want {
			t.Errorf("%d attributes: warnings %q, want %d", n+1, in.Warnings, want)
		}
	}
}

// The mapping has the time to live of the table.
func TestProgress_TimeToLive(t *testing.T) {
	t.Parallel()
	const on, off = `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"exp"}}`, `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`
	for _, c := range []struct{ name, more, behind, exp, want string }{
		{name: "answer behind", behind: "\n" + on, want: "exp"},
		{name: "member", more: "," + on[1:len(on)-1], want: "exp"},
		{name: "request", behind: `{"TableName":"orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"exp"}}`, want: "exp"},
		{name: "turned off", behind: off},
		{name: "request to turn off", behind: `{"TimeToLiveSpecification":{"Enabled":false,"AttributeName":"exp"}}`},
		{name: "not said"},
		{name: "no number", behind: on, exp: `{"S":"tomorrow"}`},
		{name: "no item has it", behind: on, exp: "-", want: "exp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := `{"id":{"S":"1"},"exp":{"N":"1700000000"}}`
			switch {
			case c.exp == "-":
				text = `{"id":{"S":"1"}}`
			case c.exp != "":
				text = strings.Replace(text, `{"N":"1700000000"}`, c.exp, 1)
			}
			in, err := inferred(t, text, source.Options{TableSchema: append(schemaOf("orders", c.more), c.behind...)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if ttl := (*layout.Mapping)(in.Mapping).Spec().Source.TTL; ttl != nil {
				if got = ttl.Attribute; ttl.Mode != mapfile.TTLAttribute {
					t.Errorf("mode %s; only attribute loses nothing", ttl.Mode)
				}
			}
			if got != c.want {
				t.Errorf("the mapping lets items expire by %q, want %q", got, c.want)
			}
			chosen := slices.ContainsFunc(in.Choices, func(x Choice) bool { return x.What == "ttl" })
			if want := c.want != "" || c.exp == `{"S":"tomorrow"}`; chosen != want {
				t.Errorf("choices %v; a choice of the time to live: %v, want %v", in.Choices, chosen, want)
			}
			if warned := len(in.Warnings) > 0; warned != (c.name == "no number") {
				t.Errorf("warnings %q", in.Warnings)
			}
		})
	}
}
