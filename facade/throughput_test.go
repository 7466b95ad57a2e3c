package facade

import (
	"encoding/json"
	"fmt"
	"testing"
)

// The warm throughput of a table and an index is always described, and never decreases: it is
// the maximum of the initial, given and provisioned throughput.
func TestThroughput_Warm(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	const keys = `"AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}]`
	const index = `"GlobalSecondaryIndexes": [{"IndexName": "ix1", "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}`
	units := func(read, write int) string {
		return fmt.Sprintf(`"ProvisionedThroughput": {"ReadCapacityUnits": %d, "WriteCapacityUnits": %d}`, read, write)
	}
	for _, c := range []struct{ operation, table, request, want string }{
		{"CreateTable", "demand", keys + `, "BillingMode": "PAY_PER_REQUEST"`, "12000/4000 ACTIVE"},
		{"UpdateTable", "demand", `"WarmThroughput": {"ReadUnitsPerSecond": 12001}`, "12001/4000 ACTIVE"},
		{"UpdateTable", "demand", `"WarmThroughput": {"WriteUnitsPerSecond": 4001}`, "12001/4001 ACTIVE"},
		{"CreateTable", "read", keys + `, "BillingMode": "PAY_PER_REQUEST", "WarmThroughput": {"ReadUnitsPerSecond": 12001}`, "12001/4000 ACTIVE"},
		{"CreateTable", "index", keys + `, "BillingMode": "PAY_PER_REQUEST", ` + index + `}]`, "12000/4000 ACTIVE, ix1 12000/4000 ACTIVE"},
		{"CreateTable", "units", keys + `, ` + units(1, 2) + `, ` + index + `, ` + units(3, 4) + `}]`, "1/2 ACTIVE, ix1 3/4 ACTIVE"},
		{"UpdateTable", "units", units(5, 3), "5/3 ACTIVE, ix1 3/4 ACTIVE"},
		{"UpdateTable", "units", units(1, 1), "5/3 ACTIVE, ix1 3/4 ACTIVE"},
		{"UpdateTable", "units", units(2, 6), "5/6 ACTIVE, ix1 3/4 ACTIVE"},
		{"UpdateTable", "units", `"WarmThroughput": {"ReadUnitsPerSecond": 50, "WriteUnitsPerSecond": 50}`, "50/50 ACTIVE, ix1 3/4 ACTIVE"},
		{"UpdateTable", "units", `"BillingMode": "PAY_PER_REQUEST"`, "12000/4000 ACTIVE, ix1 12000/4000 ACTIVE"},
		{"UpdateTable", "units", `"BillingMode": "PROVISIONED", ` + units(1, 1) + `, "GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "ix1", ` + units(1, 1) + `}}]`, "12000/4000 ACTIVE, ix1 12000/4000 ACTIVE"},
	} {
		must(t, s, c.operation, `{"TableName": "`+c.table+`", `+c.request+`}`)
		type warm struct {
			ReadUnitsPerSecond, WriteUnitsPerSecond int
			Status                                  string
		}
		var described struct {
			Table struct {
				WarmThroughput         warm
				GlobalSecondaryIndexes []struct {
					IndexName      string
					WarmThroughput warm
				}
			}
		}
		if err := json.Unmarshal([]byte(must(t, s, "DescribeTable", `{"TableName": "`+c.table+`"}`)), &described); err != nil {
			t.Fatal(err)
		}
		text := func(w warm) string {
			return fmt.Sprintf("%d/%d %s", w.ReadUnitsPerSecond, w.WriteUnitsPerSecond, w.Status)
		}
		got := text(described.Table.WarmThroughput)
		for _, ix := range described.Table.GlobalSecondaryIndexes {
			got += ", " + ix.IndexName + " " + text(ix.WarmThroughput)
		}
		if got != c.want {
			t.Errorf("after %s of %s with %s: %s, want %s", c.operation, c.table, c.request, got, c.want)
		}
	}
}
