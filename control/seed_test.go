package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
	"github.com/tabletop-emu/tabletop/migrate/seed"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const describedOrders = `{
    "Table": {
        "TableName": "Orders",
        "AttributeDefinitions": [
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "day", "AttributeType": "N"}
        ],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "TableStatus": "ACTIVE",
        "CreationDateTime": "2024-05-06T07:08:09.123000+02:00",
        "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
        "TableSizeBytes": 12, "ItemCount": 1,
        "TableArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders",
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST", "LastUpdateToPayPerRequestDateTime": "2024-05-06T07:08:09+02:00"},
        "GlobalSecondaryIndexes": [{
            "IndexName": "ByDay", "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total"]}, "IndexStatus": "ACTIVE",
            "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
            "IndexSizeBytes": 1, "ItemCount": 1, "IndexArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders/index/ByDay"
        }],
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "LatestStreamLabel": "2024-05-06T05:08:09.123", "LatestStreamArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders/stream/2024",
        "TableClassSummary": {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
        "DeletionProtectionEnabled": true
    }
}
{"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}}
`

const seedOrders = `{"id": {"S": "a"}, "day": {"N": "1"}, "total": {"N": "1.50"}}
{"id": {"S": "b"}, "day": {"N": "1"}, "tags": {"SS": ["x", "y"]}}
{"id": {"S": "a"}, "day": {"N": "2"}}
`

const seedModel = `{
  "tables": [
    {
      "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}],
      "TableName": "Deals",
      "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
      "GlobalSecondaryIndexes": [
        {"IndexName": "Back", "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}
      ],
      "BillingMode": "PAY_PER_REQUEST"
    }
  ],
  "items": {
    "Deals": [
      {"PutRequest": {"Item": {"pk": {"S": "d1"}, "sk": {"N": "1"}, "open": {"BOOL": true}}}},
      {"PutRequest": {"Item": {"pk": {"S": "d2"}, "sk": {"N": "2"}}}}
    ]
  },
  "access_patterns": [{"pattern": "1", "description": "a deal", "table": "Deals", "dynamodb_operation": "GetItem"}]
}`

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func says(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want %q in it", err, want)
	}
}

func equal[T any](t *testing.T, want, got T, why ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", strings.Join(why, ""), diff)
	}
}

// startSeeded starts an endpoint for seeds, which serves their mappings.
func startSeeded(t *testing.T) *labserver.Server {
	t.Helper()
	return labserver.Start(t, labserver.Options{})
}

// writeSeeds writes files below a new folder, and returns it.
func writeSeeds(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o644))
	}
	return dir
}

// fillSeeds fills an endpoint from paths.
func fillSeeds(t *testing.T, s *labserver.Server, paths ...string) ([]seed.Filled, error) {
	t.Helper()
	seeds, err := seed.Open(paths...)
	if err != nil {
		return nil, err
	}
	var filled []seed.Filled
	err = s.DynamoDB.Prepare(t.Context(), func(ctx context.Context, server *facade.Server) error {
		var err error
		filled, err = seeds.Fill(ctx, server)
		return err
	})
	return filled, err
}

// askSeeded runs an operation and returns its decoded answer.
func askSeeded(t *testing.T, e seed.Endpoint, operation, request string) map[string]any {
	t.Helper()
	answer, err := e.Call(t.Context(), operation, []byte(request))
	must(t, err)
	var out map[string]any
	must(t, json.Unmarshal(answer, &out))
	return out
}

// seededItems returns the items of a table, sorted, as JSON.
func seededItems(t *testing.T, e seed.Endpoint, table string) []string {
	t.Helper()
	var out []string
	for _, item := range askSeeded(t, e, "Scan", `{"TableName":"`+table+`"}`)["Items"].([]any) {
		text, err := json.Marshal(item)
		must(t, err)
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}

func TestSeedFill_Description(t *testing.T) {
	t.Parallel()
	s := startSeeded(t)
	dir := writeSeeds(t, map[string]string{"table.json": describedOrders, "Orders.jsonl": seedOrders})
	filled, err := fillSeeds(t, s, dir)
	must(t, err)
	equal(t, []seed.Filled{{Table: "Orders", Path: filepath.Join(dir, "Orders.jsonl"), Items: 3}}, filled)
	equal(t, []string{
		`{"day":{"N":"1"},"id":{"S":"b"},"tags":{"SS":["x","y"]}}`,
		`{"day":{"N":"2"},"id":{"S":"a"}}`,
	}, seededItems(t, s.DynamoDB, "Orders"), "the later of two items with one key remains")

	table := askSeeded(t, s.DynamoDB, "DescribeTable", `{"TableName":"Orders"}`)["Table"].(map[string]any)
	equal(t, "PAY_PER_REQUEST", table["BillingModeSummary"].(map[string]any)["BillingMode"])
	equal(t, "STANDARD_INFREQUENT_ACCESS", table["TableClassSummary"].(map[string]any)["TableClass"])
	equal(t, true, table["DeletionProtectionEnabled"])
	equal[any](t, map[string]any{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}, table["StreamSpecification"])
	index := table["GlobalSecondaryIndexes"].([]any)[0].(map[string]any)
	equal[any](t, map[string]any{"ProjectionType": "INCLUDE", "NonKeyAttributes": []any{"total"}}, index["Projection"])
	equal[any](t, map[string]any{"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"},
		askSeeded(t, s.DynamoDB, "DescribeTimeToLive", `{"TableName":"Orders"}`)["TimeToLiveDescription"])
	equal(t, []any{}, askSeeded(t, s.DynamoDB, "ListTagsOfResource", `{"ResourceArn":"`+table["TableArn"].(string)+`"}`)["Tags"].([]any), "the mark is removed")

	arn := table["LatestStreamArn"].(string)
	shard := askSeeded(t, s.DynamoDB, "DescribeStream", `{"StreamArn":"`+arn+`"}`)["StreamDescription"].(map[string]any)["Shards"].([]any)[0].(map[string]any)["ShardId"].(string)
	iterator := askSeeded(t, s.DynamoDB, "GetShardIterator", `{"StreamArn":"`+arn+`","ShardId":"`+shard+`","ShardIteratorType":"TRIM_HORIZON"}`)["ShardIterator"].(string)
	equal(t, []any{}, askSeeded(t, s.DynamoDB, "GetRecords", `{"ShardIterator":"`+iterator+`"}`)["Records"].([]any), "seeded items are not changes")
}

func TestSeedFill_Again(t *testing.T) {
	t.Parallel()
	s := startSeeded(t)
	dir := writeSeeds(t, map[string]string{"table.json": describedOrders, "Orders.jsonl": seedOrders})
	_, err := fillSeeds(t, s, dir)
	must(t, err)
	before := seededItems(t, s.DynamoDB, "Orders")
	askSeeded(t, s.DynamoDB, "DeleteItem", `{"TableName":"Orders","Key":{"id":{"S":"b"}}}`)
	askSeeded(t, s.DynamoDB, "UpdateTable", `{"TableName":"Orders","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"ByDay"}}]}`)
	filled, err := fillSeeds(t, s, dir)
	must(t, err)
	equal(t, []seed.Filled{{Table: "Orders", Path: filepath.Join(dir, "Orders.jsonl"), Left: true, Differs: "has no index ByDay"}}, filled)
	equal(t, 1, len(seededItems(t, s.DynamoDB, "Orders")))

	askSeeded(t, s.DynamoDB, "DeleteItem", `{"TableName":"Orders","Key":{"id":{"S":"a"}}}`)
	_, err = fillSeeds(t, s, dir)
	must(t, err)
	equal(t, before, seededItems(t, s.DynamoDB, "Orders"), "an empty table is filled again")
}

// brokenEndpoint fails after some calls of an operation, as a process that is killed.
type brokenEndpoint struct {
	seed.Endpoint
	operation string
	after     int
}

func (b *brokenEndpoint) Call(ctx context.Context, operation string, request []byte) ([]byte, error) {
	if operation == b.operation {
		if b.after--; b.after < 0 {
			return nil, context.Canceled
		}
	}
	return b.Endpoint.Call(ctx, operation, request)
}

// A run that ended at any call is completed by the next run.
func TestSeedFill_Interrupted(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 60 {
		many.WriteString(`{"id": {"S": "` + string(rune('a'+i%26)) + string(rune('a'+i/26)) + `"}}` + "\n")
	}
	dir := writeSeeds(t, map[string]string{"table.json": describedOrders, "Orders.jsonl": many.String()})
	for _, c := range []brokenEndpoint{
		{operation: "BatchWriteItem"}, {operation: "BatchWriteItem", after: 2}, {operation: "UpdateTable"}, {operation: "UpdateTimeToLive"}, {operation: "UntagResource"},
	} {
		t.Run(c.operation, func(t *testing.T) {
			t.Parallel()
			s := startSeeded(t)
			seeds, err := seed.Open(dir)
			must(t, err)
			c.Endpoint = s.DynamoDB
			_, err = seeds.Fill(t.Context(), &c)
			is(t, err, context.Canceled)
			_, err = fillSeeds(t, s, dir)
			must(t, err)
			equal(t, 60, len(seededItems(t, s.DynamoDB, "Orders")))
			table := askSeeded(t, s.DynamoDB, "DescribeTable", `{"TableName":"Orders"}`)["Table"].(map[string]any)
			expiry := askSeeded(t, s.DynamoDB, "DescribeTimeToLive", `{"TableName":"Orders"}`)["TimeToLiveDescription"].(map[string]any)
			if table["LatestStreamArn"] == nil || expiry["AttributeName"] != "expires" {
				t.Errorf("the settings are missing: %v, %v", table, expiry)
			}
		})
	}
}

func TestSeedFill_Model(t *testing.T) {
	t.Parallel()
	s := startSeeded(t)
	_, err := fillSeeds(t, s, filepath.Join(writeSeeds(t, map[string]string{"dynamodb_data_model.json": seedModel}), "dynamodb_data_model.json"))
	must(t, err)
	equal(t, []string{`{"open":{"BOOL":true},"pk":{"S":"d1"},"sk":{"N":"1"}}`, `{"pk":{"S":"d2"},"sk":{"N":"2"}}`}, seededItems(t, s.DynamoDB, "Deals"))
	table := askSeeded(t, s.DynamoDB, "DescribeTable", `{"TableName":"Deals"}`)["Table"].(map[string]any)
	equal(t, "Back", table["GlobalSecondaryIndexes"].([]any)[0].(map[string]any)["IndexName"])
}

func TestSeedFill_Workbench(t *testing.T) {
	t.Parallel()
	s := startSeeded(t)
	file := filepath.Join("..", "migrate", "testdata", "inputs", "workbench", "Lending.json")
	filled, err := fillSeeds(t, s, file)
	must(t, err)
	src, err := source.Open(file, source.Options{})
	must(t, err)
	equal(t, len(src.Tables), len(filled))
	for i, table := range src.Tables {
		want := 0
		for _, err := range table.Entries() {
			must(t, err)
			want++
		}
		equal(t, int64(want), filled[i].Items)
		equal(t, want, len(seededItems(t, s.DynamoDB, table.Name)))
		described := askSeeded(t, s.DynamoDB, "DescribeTable", `{"TableName":"`+table.Name+`"}`)["Table"].(map[string]any)
		indexes, _ := described["GlobalSecondaryIndexes"].([]any)
		equal(t, len(table.Indexes), len(indexes))
	}
}

// Every shipped fixture is a seed: its items are read back as they are in its source.
func TestSeedFill_Fixtures(t *testing.T) {
	t.Parallel()
	subjects, err := fixtures.Subjects()
	must(t, err)
	for _, subject := range subjects {
		t.Run(subject.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must(t, os.CopyFS(dir, subject.Files))
			seeds, err := seed.Open(dir)
			must(t, err)
			s := startSeeded(t)
			must(t, s.DynamoDB.Map(seeds.Mappings))
			filled, err := fillSeeds(t, s, dir)
			must(t, err)
			equal(t, 1, len(filled))
			if filled[0].Items == 0 {
				t.Error("no items")
			}
			again, err := fillSeeds(t, s, dir)
			must(t, err)
			equal(t, true, again[0].Left)
		})
	}
}

// The items of a fixture that do not name their table are those of its mapping.
func TestSeedFill_FixtureUnnamed(t *testing.T) {
	t.Parallel()
	dir := writeSeeds(t, map[string]string{
		"source/items.jsonl": `{"id": {"S": "a"}, "total": {"N": "5"}}`,
		"mapping.yaml": `apiVersion: migration/v1
source: {table: Orders, key: {hash: {name: id, type: S}}, schema: {total: N}}
target: {table: seedOrders, joiner: plain('#'), families: {o: {gc: {versions: 1}}}}
rules: [{name: order, row: ["{id:s}"], put: [{attr: "*", cell: "o:{attr}"}]}]
`,
	})
	seeds, err := seed.Open(dir)
	must(t, err)
	s := startSeeded(t)
	must(t, s.DynamoDB.Map(seeds.Mappings))
	_, err = fillSeeds(t, s, dir)
	must(t, err)
	equal(t, []string{`{"id":{"S":"a"},"total":{"N":"5"}}`}, seededItems(t, s.DynamoDB, "Orders"))
}

func TestSeedWrite_RoundTrip(t *testing.T) {
	t.Parallel()
	s := startSeeded(t)
	_, err := fillSeeds(t, s, writeSeeds(t, map[string]string{"table.json": describedOrders, "Orders.jsonl": seedOrders, "model.json": seedModel}))
	must(t, err)
	askSeeded(t, s.DynamoDB, "CreateTable", `{"TableName":"_empty","BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":7},
		"KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"r","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"B"},{"AttributeName":"r","AttributeType":"N"},{"AttributeName":"l","AttributeType":"S"}],
		"LocalSecondaryIndexes":[{"IndexName":"Local","KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"l","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}]}`)
	dir := filepath.Join(t.TempDir(), "out")
	for range 2 { // the second replaces the first
		tables, err := seed.Write(t.Context(), s.DynamoDB, dir, time.Unix(1_700_000_000, 0))
		must(t, err)
		equal(t, 3, tables)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	must(t, err)
	equal(t, 1, len(entries))

	other := startSeeded(t)
	_, err = fillSeeds(t, other, dir)
	must(t, err)
	for _, table := range []string{"Orders", "Deals", "_empty"} {
		equal(t, seededItems(t, s.DynamoDB, table), seededItems(t, other.DynamoDB, table))
		want, got := seededSettings(t, s.DynamoDB, table), seededSettings(t, other.DynamoDB, table)
		equal(t, want, got)
	}

	src, err := source.Open(filepath.Join(dir, "Orders"), source.Options{})
	must(t, err)
	equal(t, 1, len(src.Tables))
	equal(t, "id (S)", source.KeyText(src.Tables[0].Key), "migrate reads the export with its description")
	equal(t, "ByDay", src.Tables[0].Indexes[0].Name)
	all, err := source.Open(dir, source.Options{})
	must(t, err)
	equal(t, 3, len(all.Tables))
	for _, table := range all.Tables {
		if table.Key.Hash.Name == "" {
			t.Errorf("table %s has no key", table.Name)
		}
	}
}

// seededSettings returns the description of a table without what differs between two tables.
func seededSettings(t *testing.T, e seed.Endpoint, name string) map[string]any {
	t.Helper()
	table := askSeeded(t, e, "DescribeTable", `{"TableName":"`+name+`"}`)["Table"].(map[string]any)
	for _, own := range []string{"TableId", "CreationDateTime", "LatestStreamArn", "LatestStreamLabel", "ItemCount", "TableSizeBytes"} {
		delete(table, own)
	}
	table["TTL"] = askSeeded(t, e, "DescribeTimeToLive", `{"TableName":"`+name+`"}`)
	return table
}

func TestSeedWrite_Refused(t *testing.T) {
	t.Parallel()
	s := startSeeded(t)
	dir := writeSeeds(t, map[string]string{"notes.txt": "mine"})
	_, err := seed.Write(t.Context(), s.DynamoDB, dir, time.Unix(1_700_000_000, 0))
	says(t, err, "files of another origin")
	equal(t, "mine", writtenFiles(t, dir)[filepath.Join(dir, "notes.txt")])
	is(t, seed.CheckTarget(filepath.Join(dir, "missing", "out")), os.ErrNotExist)
}

// A write that fails leaves the earlier export, and nothing beside it.
func TestSeedWrite_Interrupted(t *testing.T) {
	t.Parallel()
	s := startSeeded(t)
	_, err := fillSeeds(t, s, writeSeeds(t, map[string]string{"table.json": describedOrders, "Orders.jsonl": seedOrders, "model.json": seedModel}))
	must(t, err)
	dir := filepath.Join(t.TempDir(), "out")
	_, err = seed.Write(t.Context(), s.DynamoDB, dir, time.Unix(1_700_000_000, 0))
	must(t, err)
	want := writtenFiles(t, dir)
	for _, c := range []brokenEndpoint{{operation: "ListTables"}, {operation: "Scan"}, {operation: "Scan", after: 1}, {operation: "DescribeTimeToLive", after: 1}} {
		c.Endpoint = s.DynamoDB
		_, err = seed.Write(t.Context(), &c, dir, time.Unix(1_700_000_100, 0))
		is(t, err, context.Canceled)
		equal(t, want, writtenFiles(t, dir))
		entries, err := os.ReadDir(filepath.Dir(dir))
		must(t, err)
		equal(t, 1, len(entries))
	}
}

// writtenFiles returns the names and contents of the files in a folder.
func writtenFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		out[name] = string(text)
		return err
	}))
	return out
}

func TestSeedOpen_Errors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"missing", nil, "cannot open the seed"},
		{"empty folder", map[string]string{"in/.keep": ""}, "in: the folder has no seeds: expected the JSON of DescribeTable"},
		{"store", map[string]string{"in/data/000004.log": "", "in/data/marker.format-version.000001.024": ""}, "in/data: the folder is the store of a server, not a seed: serve a copy of it with --data"},
		{"text", map[string]string{"in/notes.txt": "hello\n"}, "in/notes.txt:1: not a known input"},
		{"broken description", map[string]string{"in/t.json": strings.Replace(describedOrders, `"TableStatus"`, "TableStatus", 1)}, "in/t.json:9: not JSON: expected the JSON of DescribeTable or CreateTable: "},
		{"cut description", map[string]string{"in/t.json": describedOrders[:len(describedOrders)/2]}, "in/t.json:16: not JSON: expected"},
		{"no key schema", map[string]string{"in/t.json": `{"TableName": "T", "KeySchema": [], "AttributeDefinitions": []}`}, "in/t.json:1: the table schema has no KeySchema"},
		{"second value", map[string]string{"in/t.json": strings.Replace(describedOrders, "{\"TimeToLive", "\n{\"Other", 1)}, "in/t.json:28: not the description of a table"},
		{"twice", map[string]string{"in/a.json": describedOrders, "in/b.json": describedOrders}, "in/b.json:1: table Orders is also described at "},
		{"broken item", map[string]string{"in/t.json": describedOrders, "in/Orders.jsonl": "{\"id\": {\"S\": \"a\"}}\n{\"id\": {\"S\": 5}}\n"}, "in/Orders.jsonl:2: "},
		{"wrong key", map[string]string{"in/t.json": describedOrders, "in/Orders.jsonl": "{\"id\": {\"S\": \"a\"}}\n{\"id\": {\"N\": \"5\"}}\n"}, "in/Orders.jsonl:2: key attribute \"id\" is of type N"},
		{"refused item", map[string]string{"in/t.json": describedOrders, "in/Orders.jsonl": "{\"id\": {\"S\": \"a\"}}\n\n{\"id\": {\"S\": \"b\"}, \"day\": {\"S\": \"x\"}}\n"}, "in/Orders.jsonl:3: table Orders cannot store the item: "},
		{"refused table", map[string]string{"in/t.json": strings.Replace(describedOrders, `"ByDay"`, `"x"`, 1)}, "in/t.json:1: table Orders cannot be created or filled: "},
		{"no key", map[string]string{"in/Other.jsonl": seedOrders}, "in/Other.jsonl: the key of table Other is unknown: also pass its description (aws dynamodb describe-table --table-name Other)"},
		{"model items", map[string]string{"in/m.json": strings.Replace(seedModel, `"Deals": [`, `"Deal": [`, 1)}, "in/m.json: the model has items of table Deal, but describes only Deals"},
		{"model item", map[string]string{"in/m.json": strings.Replace(seedModel, `{"S": "d2"}`, `{"S": 2}`, 1)}, "in/m.json:16: item 2 of table Deals is not a PutRequest"},
		{"half export", map[string]string{"in/AWSDynamoDB/01-ab/_started": "", "in/AWSDynamoDB/01-ab/data/a.json.gz": ""}, "manifest-summary.json: the manifest is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := fillSeeds(t, startSeeded(t), filepath.Join(writeSeeds(t, c.files), "in"))
			says(t, err, c.want)
		})
	}
}

func TestSeedFill_OtherKey(t *testing.T) {
	t.Parallel()
	s := startSeeded(t)
	askSeeded(t, s.DynamoDB, "CreateTable", `{"TableName":"Orders","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"N"}]}`)
	_, err := fillSeeds(t, s, writeSeeds(t, map[string]string{"a.json": seedModel, "t.json": describedOrders}))
	says(t, err, "table Orders exists with the key id (N), but its description has id (S): delete the table")
	_, err = s.DynamoDB.Call(t.Context(), "DescribeTable", []byte(`{"TableName":"Deals"}`))
	if refused, ok := awserr.As(err); !ok || refused.Code != awserr.CodeResourceNotFound {
		t.Errorf("DescribeTable: %v, want no table: nothing is written", err)
	}
}
