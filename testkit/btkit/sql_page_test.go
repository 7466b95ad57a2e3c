package btkit_test

import (
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

func TestTotals(t *testing.T) {
	t.Parallel()
	env, ctx := btkit.Start(t), t.Context()
	text := bigtable.StringType{Encoding: bigtable.StringUtf8BytesEncoding{}}
	if err := env.BigtableAdmin(t).CreateTableFromConf(ctx, &bigtable.TableConf{
		TableID: "orders", ColumnFamilies: map[string]bigtable.Family{"o": {}},
		RowKeySchema: &bigtable.StructType{
			Fields:   []bigtable.StructField{{FieldName: "customer", FieldType: text}, {FieldName: "number", FieldType: text}},
			Encoding: bigtable.StructDelimitedBytesEncoding{Delimiter: []byte("#")},
		},
	}); err != nil {
		t.Fatal(err)
	}
	client := env.Bigtable(t)
	for key, total := range map[string]string{"c1#o1": "42", "c1#o2": "7", "c2#o1": "5"} {
		order := bigtable.NewMutation()
		order.Set("o", "total", bigtable.Time(env.Now()), []byte(total))
		if err := client.Open("orders").Apply(ctx, key, order); err != nil {
			t.Fatal(err)
		}
	}
	if err := env.BigtableInstanceAdmin(t).CreateLogicalView(ctx, env.Instance(), &bigtable.LogicalViewInfo{
		LogicalViewID: "totals",
		Query:         "SELECT customer, SUM(CAST(CAST(o['total'] AS STRING) AS INT64)) AS total FROM orders GROUP BY customer",
	}); err != nil {
		t.Fatal(err)
	}

	ps, err := client.PrepareStatement(ctx, "SELECT total FROM totals WHERE customer = @c",
		map[string]bigtable.SQLType{"c": bigtable.StringSQLType{}})
	if err != nil {
		t.Fatal(err)
	}
	bound, err := ps.Bind(map[string]any{"c": "c1"})
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	if err := bound.Execute(ctx, func(row bigtable.ResultRow) bool {
		err = row.GetByName("total", &total)
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil || total != 49 {
		t.Errorf("the total is %d, %v, want 49", total, err)
	}

	rows := env.SQL(t, "SELECT number FROM orders WHERE customer = @c ORDER BY number", "c", "c1")
	if len(rows) != 2 || rows[0]["number"] != "o1" {
		t.Errorf("the orders are %v", rows)
	}
}
