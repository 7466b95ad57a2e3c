package control_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

type streamRecord struct {
	EventName string
	DynamoDB  struct {
		Keys               map[string]map[string]string
		OldImage, NewImage map[string]map[string]string
		SequenceNumber     string
	}
}

type changeEntry struct {
	Kind, Family string
	Qualifier    struct{ Text string }
	Value        struct{ Base64, Text string }
	Bytes        int
}

type changeRecord struct {
	Key     struct{ Text string }
	Time    time.Time
	GC      bool
	Entries []changeEntry
	Record  string
}

func (c changeRecord) String() string {
	text := c.Key.Text
	for _, e := range c.Entries {
		text += " " + e.Kind + " " + e.Family + ":" + e.Qualifier.Text
	}
	return text
}

const withStream = `,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`

// changeStream turns on the change stream of a table.
func (e *env) changeStream(table string) {
	e.t.Helper()
	e.must("POST", "tables/i/"+table+"/changes", "", nil)
}

// rowsOf returns the Bigtable table with a DynamoDB table's items.
func (e *env) rowsOf(dynamoDB string) string {
	e.t.Helper()
	var tables struct {
		Bigtable []struct {
			Table    string
			DynamoDB []string
		}
		DynamoDB []string
	}
	e.must("GET", "tables?dynamodb="+dynamoDB, "", &tables)
	if len(tables.Bigtable) != 1 || !slices.Contains(tables.Bigtable[0].DynamoDB, dynamoDB) || !slices.Equal(tables.DynamoDB, []string{dynamoDB}) {
		e.t.Fatalf("the table with the items of %s: %+v", dynamoDB, tables)
	}
	return tables.Bigtable[0].Table
}

// pages reads a stream to its end, page by page, and returns the position to continue from.
func pages[T any](e *env, member, path string) (all []T, next string) {
	e.t.Helper()
	for cursor := ""; ; {
		var page map[string]json.RawMessage
		e.must("GET", path+cursor, "", &page)
		var found []T
		if err := json.Unmarshal(page[member], &found); err != nil {
			e.t.Fatal(err)
		}
		var at string
		if err := json.Unmarshal(page["next"], &at); err != nil {
			e.t.Fatal(err)
		}
		all = append(all, found...)
		if page["cursor"] == nil {
			return all, at
		}
		if string(page["cursor"]) != string(page["next"]) {
			e.t.Fatalf("the cursor is %s, next is %s", page["cursor"], page["next"])
		}
		cursor = "&cursor=" + url.QueryEscape(at)
	}
}

// TestStreams: both endpoints report a write, and each change of an item names the record of
// the same write; writes of the other endpoint, and garbage collection, have none.
func TestStreams(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", strings.TrimSuffix(createTable, "}")+withStream)
	rows := e.rowsOf("orders")
	e.changeStream(rows)
	e.query("PutItem", `{"TableName":"orders","Item":{"k":{"S":"a"},"n":{"N":"1"}}}`)
	e.query("UpdateItem", `{"TableName":"orders","Key":{"k":{"S":"a"}},"UpdateExpression":"SET n = :n","ExpressionAttributeValues":{":n":{"N":"2"}}}`)
	e.query("TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"orders","Item":{"k":{"S":"b"}}}},{"Put":{"TableName":"orders","Item":{"k":{"S":"c"}}}}]}`)
	e.query("DeleteItem", `{"TableName":"orders","Key":{"k":{"S":"a"}}}`)

	var all struct {
		Bigtable []struct {
			Instance, Table, Retention string
			DynamoDB                   []string
		}
		DynamoDB []struct {
			Table, ARN, View, Status, Instance, Over string
			Latest                                   bool
		}
	}
	e.must("GET", "streams", "", &all)
	if len(all.Bigtable) != 1 || all.Bigtable[0].Table != rows || all.Bigtable[0].Retention != "24h0m0s" || !slices.Equal(all.Bigtable[0].DynamoDB, []string{"orders"}) {
		t.Errorf("change streams: %+v", all.Bigtable)
	}
	if len(all.DynamoDB) != 1 || all.DynamoDB[0].Table != "orders" || all.DynamoDB[0].View != "NEW_AND_OLD_IMAGES" || all.DynamoDB[0].Status != "ENABLED" || all.DynamoDB[0].Over != rows || !all.DynamoDB[0].Latest {
		t.Errorf("streams: %+v", all.DynamoDB)
	}

	records, _ := pages[streamRecord](e, "records", "streams/orders/records?limit=2")
	var texts []string
	of := map[string]string{} // a write to its record
	for i, r := range records {
		text := r.EventName + " " + r.DynamoDB.Keys["k"]["S"]
		texts = append(texts, text)
		of[r.DynamoDB.SequenceNumber] = text
		if i > 0 && r.DynamoDB.SequenceNumber <= records[i-1].DynamoDB.SequenceNumber {
			t.Errorf("%s is behind %s", r.DynamoDB.SequenceNumber, records[i-1].DynamoDB.SequenceNumber)
		}
	}
	slices.Sort(texts[2:4]) // of a transaction, in any order
	if want := []string{"INSERT a", "MODIFY a", "INSERT b", "INSERT c", "REMOVE a"}; !slices.Equal(texts, want) {
		t.Errorf("records: %q, want %q", texts, want)
	}

	changes, _ := pages[changeRecord](e, "changes", "tables/i/"+rows+"/changes?limit=2")
	met := map[string]bool{}
	for _, c := range changes {
		if c.Record == "" {
			t.Errorf("%v names no record", c)
			continue
		}
		said, ok := of[c.Record]
		if !ok || met[said] || !strings.Contains(c.Key.Text, strings.Fields(said)[1]) {
			t.Errorf("%v is of the record %q (%s)", c, said, c.Record)
		}
		met[said] = true
		for _, entry := range c.Entries {
			if strings.HasPrefix(entry.Family, "_") {
				t.Errorf("%v has the endpoint's own cells", c)
			}
		}
	}
	if len(met) != len(records) {
		t.Errorf("%d of %d records were met: %v", len(met), len(records), changes)
	}
	bookkeeping, _ := pages[changeRecord](e, "changes", "tables/i/"+rows+"/changes?bookkeeping=true&limit=1000")
	if len(bookkeeping) < len(changes) || !strings.Contains(fmt.Sprint(bookkeeping), "_f:") {
		t.Errorf("with bookkeeping there are %v", bookkeeping)
	}
}

// TestStreams_Follow: a reader after next gets the records since, and a reader from a time
// gets none before it, in either endpoint; garbage collection is marked.
func TestStreams_Follow(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", strings.TrimSuffix(createTable, "}")+withStream)
	e.createRows("t")
	e.changeStream("t")
	write := func(value string) {
		t.Helper()
		e.query("PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"k":{"S":"k"},"v":{"S":%q}}}`, value))
		e.must("POST", "tables/i/t/rows", fmt.Sprintf(`{"rows":[{"key":{"text":"k"},"cells":[{"family":"f","qualifier":{"text":"q"},"value":{"text":%q}}]}]}`, value), nil)
		e.must("POST", "clock", `{"advance":"1m"}`, nil)
	}
	values := func(records []streamRecord, changes []changeRecord) (out []string) {
		for _, r := range records {
			out = append(out, "d"+r.DynamoDB.NewImage["v"]["S"])
		}
		for _, c := range changes {
			out = append(out, "b"+c.Entries[0].Value.Text)
		}
		return out
	}
	write("1")
	write("2")
	at := e.lab.Clock().Now().UTC().Format(time.RFC3339Nano)
	records, afterRecords := pages[streamRecord](e, "records", "streams/orders/records?")
	changes, afterChanges := pages[changeRecord](e, "changes", "tables/i/t/changes?")
	if got := values(records, changes); !slices.Equal(got, []string{"d1", "d2", "b1", "b2"}) {
		t.Errorf("from the beginning: %q", got)
	}
	write("3")
	for name, query := range map[string][2]string{
		"behind next": {"?cursor=" + afterRecords, "?cursor=" + afterChanges}, "from a time": {"?from=" + url.QueryEscape(at), "?from=" + url.QueryEscape(at)},
	} {
		records, _ = pages[streamRecord](e, "records", "streams/orders/records"+query[0])
		changes, _ = pages[changeRecord](e, "changes", "tables/i/t/changes"+query[1])
		if got := values(records, changes); !slices.Equal(got, []string{"d3", "b3"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	e.must("POST", "gc", "", nil)
	changes, _ = pages[changeRecord](e, "changes", "tables/i/t/changes?from="+url.QueryEscape(e.lab.Clock().Now().UTC().Format(time.RFC3339Nano)))
	if len(changes) == 0 || !changes[0].GC || changes[0].Entries[0].Kind != "DeleteCells" {
		t.Errorf("collected cells: %v", changes)
	}
	// A day later no record is retained.
	e.must("POST", "clock", `{"advance":"25h"}`, nil)
	records, _ = pages[streamRecord](e, "records", "streams/orders/records?cursor="+afterRecords)
	changes, _ = pages[changeRecord](e, "changes", "tables/i/t/changes?cursor="+afterChanges)
	if got := values(records, changes); len(got) != 0 {
		t.Errorf("a day later: %q", got)
	}
}

// TestStreams_Bounds: a large answer ends, the next one continues there, and a long value is
// cut and has its length.
func TestStreams_Bounds(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", strings.TrimSuffix(createTable, "}")+withStream)
	e.createRows("t")
	e.changeStream("t")
	client := btclient.New(e.lab.Bigtable().Conn(), "p", "i", btclient.Options{})
	const writes = 8
	for i := range writes {
		e.query("PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"k":{"S":"k%d"},"v":{"S":%q}}}`, i%2, strings.Repeat(string(rune('a'+i)), 390_000)))
		set := []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, make([]byte, 1<<20))}
		if err := client.MutateRow(t.Context(), "t", fmt.Appendf(nil, "k%d", i%2), set); err != nil {
			t.Fatal(err)
		}
	}
	var page struct {
		Records []streamRecord
		Changes []changeRecord
		Cursor  string
	}
	e.must("GET", "streams/orders/records", "", &page)
	if n := len(page.Records); n == 0 || n > 7 || page.Cursor == "" {
		t.Errorf("%d records of 780 kB in an answer, the cursor is %q", n, page.Cursor)
	}
	if records, _ := pages[streamRecord](e, "records", "streams/orders/records?"); len(records) != writes {
		t.Errorf("%d records in all", len(records))
	}
	e.must("GET", "tables/i/t/changes", "", &page)
	if n := len(page.Changes); n == 0 || n > 4 || page.Cursor == "" {
		t.Errorf("%d changes of 1 MiB in an answer, the cursor is %q", n, page.Cursor)
	}
	changes, _ := pages[changeRecord](e, "changes", "tables/i/t/changes?")
	if len(changes) != writes {
		t.Errorf("%d changes in all", len(changes))
	}
	if entry := changes[0].Entries[0]; entry.Bytes != 1<<20 || len(entry.Value.Base64) > 100_000 {
		t.Errorf("a value of %d bytes comes as %d of base64", entry.Bytes, len(entry.Value.Base64))
	}
}

// TestStreams_Refused: unknown tables, tables without a stream, and invalid parameters.
func TestStreams_Refused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.createRows("t")
	for path, want := range map[string]struct {
		status int
		code   string
		text   string
	}{
		"streams/none/records":                    {http.StatusBadRequest, "ResourceNotFoundException", "none"},
		"streams/orders/records":                  {http.StatusConflict, "no_stream", "table orders has no stream"},
		"streams/orders/records?arn=x":            {http.StatusBadRequest, "ValidationException", "streamArn"},
		"streams/orders/records?from=noon":        {http.StatusBadRequest, "bad_request", `from is "noon"`},
		"streams/orders/records?limit=0":          {http.StatusBadRequest, "bad_request", "limit"},
		"streams/orders/records?before=1":         {http.StatusBadRequest, "bad_request", "before"},
		"tables/i/none/changes":                   {http.StatusNotFound, "not_found", "none"},
		"tables/i/t/changes":                      {http.StatusConflict, "no_stream", "has no change stream"},
		"tables/i/t/changes?cursor=x":             {http.StatusBadRequest, "bad_request", "cursor"},
		"tables/i/t/changes?from=2030-13-01":      {http.StatusBadRequest, "bad_request", "from is"},
		"tables/i/t/changes?from=x&cursor=000000": {http.StatusConflict, "no_stream", "has no change stream"},
	} {
		var got failed
		if status := e.ask("GET", path, "", &got); status != want.status || got.Error.Code != want.code || !strings.Contains(got.Error.Text, want.text) || got.Error.Remedy == "" {
			t.Errorf("%s: %d %+v, want %+v", path, status, got.Error, want)
		}
	}
}
