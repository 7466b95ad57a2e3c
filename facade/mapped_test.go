package facade

import (
	_ "embed" // of the mappings
	"encoding/json"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// These are the mappings of the store's tests.
var (
	//go:embed internal/store/testdata/catalog.yaml
	catalogYAML string
	//go:embed internal/store/testdata/video.yaml
	videoYAML string
	//go:embed internal/store/testdata/tickets.yaml
	ticketsYAML string
)

func mappingOf(tb testing.TB, text string) *mapping.Mapping {
	tb.Helper()
	m, err := mapping.Load("mapping.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// A mapping can set the lag of each of its indexes, regardless of the server's lag.
func TestOperations_MappedIndexLag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server time.Duration
		lag    string
		after  time.Duration // the index has the item that long after its write, and not a millisecond earlier; 0: at once
	}{
		{"of the mapping", 0, ", lag: 30s", 30 * time.Second},
		{"of the server", time.Minute, "", time.Minute},
		{"shorter than the server's", time.Minute, ", lag: 10s", 10 * time.Second},
		{"none", 0, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now := clock.NewFrozen(testTime)
			s := newTestServer(t, func(o *Options) {
				o.Now, o.IndexLag = now.Now, c.server
				o.Mappings = []*mapping.Mapping{mappingOf(t, strings.Replace(catalogYAML, "as: table", "as: table"+c.lag, 1))}
			})
			must(t, s, "PutItem", `{"TableName": "Products", "Item": {"PK": {"S": "hats"}, "SK": {"S": "1"}, "Description": {"S": "felt"}, "Price": {"N": "3"}}}`)
			indexed := func() bool {
				return strings.Contains(must(t, s, "Query", `{"TableName": "Products", "IndexName": "ByPrice", "KeyConditionExpression": "Description = :d", "ExpressionAttributeValues": {":d": {"S": "felt"}}}`), `"Count":1,`)
			}
			if c.after > 0 {
				now.Advance(c.after - time.Millisecond)
				if indexed() {
					t.Errorf("the index has the item before %v are over", c.after)
				}
				now.Advance(time.Millisecond)
			}
			if !indexed() {
				t.Errorf("the index has not the item after %v", c.after)
			}
		})
	}
}

// Rules of a mapping may share a column: PutItem does not overwrite the item in it.
func TestPutItem_SharedColumn(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) { o.Mappings = []*mapping.Mapping{mappingOf(t, videoYAML)} })
	must(t, s, "PutItem", `{"TableName": "Videos", "Item": {"PK": {"S": "0123"}, "SK": {"S": "VideoStatsViews"}, "Count": {"N": "156"}}}`)
	_, err := s.Call(t.Context(), "PutItem", []byte(`{"TableName": "Videos", "Item": {"PK": {"S": "0123"}, "SK": {"S": "VideoStats"}, "ViewCount": {"N": "45"}}}`))
	if e, ok := awserr.As(err); !ok || e.Code != awserr.CodeValidation {
		t.Errorf("PutItem over another item: %v", err)
	}
}

// A batch writes its other items if the table's rows cannot hold one of them, or if the Bigtable
// refuses its row or that of its index entry. That item comes back as unprocessed, and a batch of
// it alone fails.
func TestBatchWriteItem_RefusedItem(t *testing.T) {
	t.Parallel()
	conn := &faultyConn{code: codes.FailedPrecondition}
	s := newTestServer(t, func(o *Options) {
		conn.ClientConnInterface = o.Conn
		o.Conn, o.Mappings = conn, []*mapping.Mapping{mappingOf(t, videoYAML)}
	})
	must(t, s, "CreateTable", createOrders)
	conn.set(false, func(req any) bool {
		write, ok := req.(*btpb.CheckAndMutateRowRequest)
		isRow := strings.Contains(string(write.GetRowKey()), "refused")
		isEntry := strings.Contains(write.GetTableName(), "_tabletop.i.") && strings.Contains(string(write.GetRowKey()), "behind")
		return ok && (isRow || isEntry)
	})
	put := func(item string) string { return `{"PutRequest":{"Item":{` + item + `}}}` }
	for _, c := range []struct{ table, first, refused, last, want, count string }{
		{
			"Videos", `"PK":{"S":"0123"},"SK":{"S":"VideoStatsViews"},"Count":{"N":"156"}`, `"PK":{"S":"0123"},"SK":{"S":"VideoStats"},"ViewCount":{"N":"45"}`,
			`"PK":{"S":"4567"},"SK":{"S":"VideoStatsLikes"},"Count":{"N":"1"}`, awserr.CodeValidation, `"Count":2,`,
		},
		{"orders", `"id":{"S":"a"}`, `"id":{"S":"refused"}`, `"id":{"S":"z"}`, awserr.CodeInternalServerError, `"Count":2,`},
		{"orders", `"id":{"S":"a"}`, `"id":{"S":"behind"},"v":{"N":"1"}`, `"id":{"S":"z"}`, awserr.CodeInternalServerError, `"Count":3,`},
	} {
		got := must(t, s, "BatchWriteItem", `{"RequestItems":{"`+c.table+`":[`+put(c.first)+","+put(c.refused)+","+put(c.last)+`]}}`)
		if want := `{"UnprocessedItems":{"` + c.table + `":[` + put(c.refused) + `]}}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := must(t, s, "Scan", `{"TableName": "`+c.table+`"}`); !strings.Contains(got, c.count) {
			t.Errorf("table %s has %s", c.table, got)
		}
		_, err := s.Call(t.Context(), "BatchWriteItem", []byte(`{"RequestItems":{"`+c.table+`":[`+put(c.refused)+`]}}`))
		if e, ok := awserr.As(err); !ok || e.Code != c.want {
			t.Errorf("alone: %v, want %s", err, c.want)
		}
	}
}

// A write changes only the attributes that it names, as in DynamoDB: a derived attribute keeps
// its value when an attribute of its template changes. The row then stores its value, until it
// equals that of the template again. Indexes have the value of the attribute, not that of its
// template.
func TestOperations_DerivedAttributes(t *testing.T) {
	t.Parallel()
	const (
		key     = `"TableName": "Tickets", "Key": {"PK": {"S": "TICKET#1"}, "SK": {"S": "TICKET#1"}}`
		values  = `, "ExpressionAttributeNames": {"#s": "status"}, "ExpressionAttributeValues": {":s": {"S": "SHUT"}}`
		partner = `, "ExpressionAttributeNames": {"#s": "status"}, "ExpressionAttributeValues": {":s": {"S": "SHUT"}, ":p": {"S": "STATUS#SHUT"}}`
		rest    = `"status":{"S":"OPEN"},"votes":{"N":"1"}`
		counted = `, "UpdateExpression": "ADD votes :one", "ExpressionAttributeValues": {":one": {"N": "1"}}`
	)
	for name, text := range map[string]string{"indexed": ticketsYAML, "blind": withoutIndexes(ticketsYAML)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t, func(o *Options) { o.Mappings = []*mapping.Mapping{mappingOf(t, text)} })
			put := `{"TableName": "Tickets", "Item": {"PK":{"S":"TICKET#1"},"SK":{"S":"TICKET#1"},"kind":{"S":"Ticket"},"GSI1PK":{"S":"STATUS#OPEN"},"GSI1SK":{"S":"2024"},"openedAt":{"S":"2024"},"score":{"N":"1"},"label":{"S":"STATUS#OPEN/1"},` + rest + `}}`
			for _, c := range []struct{ operation, request, partition, score, label, exceptions string }{
				{"PutItem", put, "STATUS#OPEN", "1", "STATUS#OPEN/1", ""},
				{"UpdateItem", `{` + key + counted + `}`, "STATUS#OPEN", "1", "STATUS#OPEN/1", `{"score":{"N":"1"}}`},
				{"UpdateItem", `{` + key + `, "UpdateExpression": "SET score = votes"}`, "STATUS#OPEN", "2", "STATUS#OPEN/1", ""},
				{"UpdateItem", `{` + key + `, "UpdateExpression": "SET #s = :s", "ConditionExpression": "GSI1PK <> :s"` + values + `}`, "STATUS#OPEN", "2", "STATUS#OPEN/1", `{"GSI1PK":{"S":"STATUS#OPEN"}}`},
				{"UpdateItem", `{` + key + `, "UpdateExpression": "SET GSI1PK = :p", "ConditionExpression": "#s = :s"` + partner + `}`, "STATUS#SHUT", "2", "STATUS#OPEN/1", `{"label":{"S":"STATUS#OPEN/1"}}`},
				{"UpdateItem", `{` + key + `, "UpdateExpression": "REMOVE label, score"}`, "STATUS#SHUT", "", "", `{}["label","score"]`},
				{"TransactWriteItems", `{"TransactItems": [{"Update": {` + key + `, "UpdateExpression": "REMOVE #s", "ExpressionAttributeNames": {"#s": "status"}}}]}`, "STATUS#SHUT", "", "", `{"GSI1PK":{"S":"STATUS#SHUT"}}["label","score"]`},
				{"ExecuteStatement", `{"Statement": "UPDATE Tickets SET status = 'SHUT' WHERE PK = 'TICKET#1' AND SK = 'TICKET#1'"}`, "STATUS#SHUT", "", "", `{}["label","score"]`},
				{"BatchWriteItem", `{"RequestItems": {"Tickets": [{"PutRequest": {` + put[len(`{"TableName": "Tickets", `):] + `}]}}`, "STATUS#OPEN", "1", "STATUS#OPEN/1", ""},
			} {
				must(t, s, c.operation, c.request)
				var answer struct {
					Item map[string]struct{ S, N string }
				}
				if err := json.Unmarshal([]byte(must(t, s, "GetItem", `{`+key+`}`)), &answer); err != nil {
					t.Fatal(err)
				}
				i := answer.Item
				if i["GSI1PK"].S != c.partition || i["score"].N != c.score || i["label"].S != c.label || i["kind"].S != "Ticket" || i["GSI1SK"].S != "2024" {
					t.Errorf("after %s the item is %v, want %s, %q, %q", c.request, i, c.partition, c.score, c.label)
				}
				exceptions := ""
				row, err := nativeClient(s).ReadRow(t.Context(), "tickets", []byte("t#1"), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, cell := range row.Cells {
					if cell.Family == lens.FamilyTypes {
						exceptions += string(cell.Value)
					}
				}
				if exceptions != c.exceptions {
					t.Errorf("after %s the row has the exceptions %s, want %s", c.request, exceptions, c.exceptions)
				}
				if name == "blind" {
					continue
				}
				for _, partition := range []string{"STATUS#OPEN", "STATUS#SHUT"} {
					found := must(t, s, "Query", `{"TableName": "Tickets", "IndexName": "GSI1", "KeyConditionExpression": "GSI1PK = :p", "FilterExpression": "kind = :k", "ProjectionExpression": "PK, kind", "ExpressionAttributeValues": {":p": {"S": "`+partition+`"}, ":k": {"S": "Ticket"}}}`)
					if want := partition == c.partition; strings.Contains(found, `"Items":[{"PK":{"S":"TICKET#1"},"kind":{"S":"Ticket"}}]`) != want {
						t.Errorf("after %s, partition %s is %s", c.request, partition, found)
					}
				}
			}
		})
	}
}

// Statements work on a table in the layout of a mapping as on any other.
func TestExecuteStatement_Mapped(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) { o.Mappings = []*mapping.Mapping{mappingOf(t, catalogYAML)} })
	for _, c := range []struct{ operation, request, want string }{
		{"ExecuteStatement", `{"Statement": "INSERT INTO Products VALUE {'PK': 'hats', 'SK': '1', 'Description': 'felt', 'Price': 3}"}`, `{"Items":[]}`},
		{"ExecuteStatement", `{"Statement": "INSERT INTO Products VALUE {'PK': 'hats', 'SK': '1'}"}`, "DuplicateItemException"},
		{"ExecuteStatement", `{"Statement": "UPDATE Products SET Price = Price + 1 WHERE PK = 'hats' AND SK = '1' AND Price = 3 RETURNING MODIFIED NEW *"}`, `{"Items":[{"Price":{"N":"4"}}]}`},
		{"ExecuteStatement", `{"Statement": "SELECT SK, Price FROM Products WHERE PK = 'hats' AND begins_with(SK, '1')"}`, `{"Items":[{"Price":{"N":"4"},"SK":{"S":"1"}}]}`},
		{"ExecuteStatement", `{"Statement": "SELECT SK FROM Products.ByPrice WHERE Description = 'felt' AND Price > 3"}`, `{"Items":[{"SK":{"S":"1"}}]}`},
		{"ExecuteTransaction", `{"TransactStatements": [{"Statement": "DELETE FROM Products WHERE PK = 'hats' AND SK = '1'"}, {"Statement": "INSERT INTO Products VALUE {'PK': 'hats', 'SK': '2', 'Description': 'straw', 'Price': 1}"}]}`, `{"Responses":[]}`},
		{"BatchExecuteStatement", `{"Statements": [{"Statement": "SELECT * FROM Products WHERE PK = 'hats' AND SK = '1'"}, {"Statement": "SELECT SK FROM Products WHERE PK = 'hats' AND SK = '2'"}]}`, `{"Responses":[{"TableName":"Products"},{"TableName":"Products","Item":{"SK":{"S":"2"}}}]}`},
	} {
		answer, err := s.Call(t.Context(), c.operation, []byte(c.request))
		if err != nil {
			answer = []byte(err.Error())
		}
		if !strings.Contains(string(answer), c.want) {
			t.Errorf("%s: %s, want %s", c.request, answer, c.want)
		}
	}
}
