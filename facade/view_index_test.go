package facade

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/ddbmodel"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// shopYAML has three kinds of items in one table, which share the overloaded index GSI1.
const shopYAML = `
apiVersion: migration/v1
source:
  table: Shop
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {GSI1PK: S, GSI1SK: S, Name: S, Status: S, Total: N}
  gsis:
  - {name: GSI1, hash: GSI1PK, range: GSI1SK, as: view}
  - {name: ByTotal, hash: Status, range: Total, projection: [Name], as: view}
  - {name: ByName, hash: Name, projection: KEYS_ONLY, as: view}
target:
  table: shop
  families:
    a: {gc: {versions: 1}}
    _t: {gc: {versions: 1}}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
on: {unknown-attribute: sidecar}
rules:
- name: customer
  when: {PK: "CUSTOMER#{id}", SK: PROFILE}
  row: [customer, "{id}"]
  put: [{attr: Total, cell: "a:Total", codec: nord}, {attr: "*", cell: "a:{attr}"}]
- name: order
  when: {PK: "CUSTOMER#{id}", SK: "ORDER#{no}"}
  row: [order, "{id}", "{no}"]
  put: [{attr: Total, cell: "a:Total", codec: nord}, {attr: "*", cell: "a:{attr}"}]
- name: product
  when: {PK: "PRODUCT#{id}", same: [SK, PK]}
  row: [product, "{id}"]
  put: [{attr: Total, cell: "a:Total", codec: nord}, {attr: "*", cell: "a:{attr}"}]
`

// as returns shopYAML with another form of its indexes.
func as(form string) string { return strings.ReplaceAll(shopYAML, "as: view", "as: "+form) }

// drawShop draws the items of shopYAML.
func drawShop(d *drawnTable) {
	d.names = []string{"GSI1PK", "GSI1SK", "Name", "Status", "Total", "GSI1SK", "more"}
	d.keys = func(r *rapid.T) ddbmodel.Item {
		pk := oneOf(r, "PK", "CUSTOMER#1", "CUSTOMER#1", "CUSTOMER#2", "CUSTOMER#a#b", "PRODUCT#1", "PRODUCT#2")
		sk := pk
		if strings.HasPrefix(pk, "C") {
			sk = oneOf(r, "SK", "PROFILE", "ORDER#1", "ORDER#2", "ORDER#a\x00b")
		}
		return ddbmodel.Item{"PK": ddbmodel.String(pk), "SK": ddbmodel.String(sk)}
	}
	d.attributes = func(r *rapid.T, _ ddbmodel.Item) ddbmodel.Item {
		item := ddbmodel.Item{}
		sometimes := func(name string, v func() ddbmodel.Value) {
			if !rarely(r, name, 4) {
				item[name] = v()
			}
		}
		sometimes("GSI1PK", func() ddbmodel.Value {
			return ddbmodel.String(oneOf(r, "GSI1PK", "OPEN", "CITY#Rome", "a\x00b", "\x00"))
		})
		sometimes("GSI1SK", func() ddbmodel.Value { return drawScalar(r, "S") })
		sometimes("Name", func() ddbmodel.Value { return ddbmodel.String(oneOf(r, "Name", "Ada", "Bob", "ä")) })
		sometimes("Status", func() ddbmodel.Value { return ddbmodel.String(oneOf(r, "Status", "OPEN", "SHUT")) })
		sometimes("Total", func() ddbmodel.Value { return drawScalar(r, "N") })
		return odd(r, item, d.names...)
	}
}

// newViewServer returns a facade with a mapping, over a Bigtable of its own whose views have a lag.
func newViewServer(t *testing.T, mappingText string, lag time.Duration, change ...func(*Options)) (*Server, *clock.Clock) {
	t.Helper()
	now := clock.NewFrozen(testTime)
	store := peer.Start(t, engine.Options{Now: now.Now}, emu.Options{Clock: now, ViewLag: lag})
	s := newTestServer(t, append([]func(*Options){func(o *Options) {
		o.Conn, o.Now = store.Conn(), now.Now
		o.Mappings = []*mapping.Mapping{mappingOf(t, mappingText)}
	}}, change...)...)
	return s, now
}

// writeShop sends n random writes to each of the servers; later ones replace or delete earlier items.
func writeShop(t *testing.T, random *rand.Rand, n int, servers ...*Server) {
	t.Helper()
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	for range n {
		key := attr.Item{"PK": attr.String(pick("CUSTOMER#1", "CUSTOMER#2", "PRODUCT#1", "PRODUCT#2", "PRODUCT#3"))}
		if key["SK"] = key["PK"]; strings.HasPrefix(key["PK"].Str, "C") {
			key["SK"] = attr.String(pick("PROFILE", "ORDER#1", "ORDER#2", "ORDER#3"))
		}
		text := string(attr.AppendItemJSON(nil, key))
		operation, body := "DeleteItem", `"Key":`+text
		switch random.IntN(5) {
		case 0:
		case 1:
			operation = "UpdateItem"
			body += fmt.Sprintf(`,"UpdateExpression":"SET GSI1SK = :s REMOVE #n","ExpressionAttributeNames":{"#n":"Name"},"ExpressionAttributeValues":{":s":{"S":%q}}`, pick("a", "d"))
		default:
			operation = "PutItem"
			item := strings.TrimSuffix(text, "}")
			for _, a := range []string{
				`"GSI1PK":{"S":"` + pick("OPEN", "CITY#Rome") + `"}`, `"GSI1SK":{"S":"` + pick("a", "b", "c#1", "c#2") + `"}`, `"Name":{"S":"` + pick("Ada", "Bob") + `"}`,
				`"Status":{"S":"` + pick("OPEN", "SHUT") + `"}`, `"Total":{"N":"` + pick("1", "2.5", "-3") + `"}`, `"more":{"S":"` + pick("x", "y") + `"}`,
			} {
				if random.IntN(5) > 0 {
					item += "," + a
				}
			}
			body = `"Item":` + item + "}"
		}
		for _, s := range servers {
			must(t, s, operation, `{"TableName":"Shop",`+body+`}`)
		}
	}
}

// shopReads are reads of the indexes of shopYAML: the operation, the members of the request, and the
// sort key of the answer.
var shopReads = func() (reads [][3]string) {
	for _, pk := range []string{"OPEN", "CITY#Rome", "none"} {
		for _, more := range []string{"", " AND begins_with(GSI1SK, :s)", " AND GSI1SK > :s", " AND GSI1SK <= :s", " AND GSI1SK BETWEEN :s AND :s"} {
			values := `":p":{"S":"` + pk + `"}`
			if more != "" {
				values += `,":s":{"S":"c#1"}`
			}
			for _, forward := range []string{"true", "false"} {
				reads = append(reads, [3]string{"Query", `"IndexName":"GSI1","ScanIndexForward":` + forward + `,"KeyConditionExpression":"GSI1PK = :p` + more + `","ExpressionAttributeValues":{` + values + `}`, "GSI1SK"})
			}
		}
	}
	return append(reads,
		[3]string{"Query", `"IndexName":"GSI1","KeyConditionExpression":"GSI1PK = :p","FilterExpression":"#t > :n","ProjectionExpression":"PK, GSI1SK, more","ExpressionAttributeNames":{"#t":"Total"},"ExpressionAttributeValues":{":p":{"S":"OPEN"},":n":{"N":"0"}}`, "GSI1SK"},
		[3]string{"Query", `"IndexName":"ByTotal","KeyConditionExpression":"#s = :p AND #t < :n","ExpressionAttributeNames":{"#s":"Status","#t":"Total"},"ExpressionAttributeValues":{":p":{"S":"OPEN"},":n":{"N":"2.5"}}`, "Total"},
		[3]string{"Query", `"IndexName":"ByName","KeyConditionExpression":"#n = :p","ExpressionAttributeNames":{"#n":"Name"},"ExpressionAttributeValues":{":p":{"S":"Ada"}}`, ""},
		[3]string{"Scan", `"IndexName":"GSI1"`, ""},
		[3]string{"Scan", `"IndexName":"ByTotal","FilterExpression":"attribute_exists(#n)","ExpressionAttributeNames":{"#n":"Name"}`, ""},
	)
}()

// shopAnswers returns the answers of shopReads, in pages of 3. The order of items with one sort key is
// not defined, so each line has a sort key and its items, sorted.
func shopAnswers(t *testing.T, s *Server) (out []string) {
	t.Helper()
	for _, read := range shopReads {
		out = append(out, read[0]+" "+read[1])
		last, key, items := "", "", []string(nil)
		flush := func() {
			if slices.Sort(items); items != nil {
				out = append(out, key+": "+strings.Join(items, " "))
			}
			items = nil
		}
		for {
			var page struct {
				Items            []map[string]json.RawMessage
				LastEvaluatedKey json.RawMessage
			}
			if err := json.Unmarshal([]byte(must(t, s, read[0], `{"TableName":"Shop","Limit":3,`+read[1]+last+`}`)), &page); err != nil {
				t.Fatal(err)
			}
			for _, item := range page.Items {
				if at := string(item[read[2]]); at != key {
					flush()
					key = at
				}
				items = append(items, canonicalItem(ddbmodel.Text(item)))
			}
			if page.LastEvaluatedKey == nil {
				break
			}
			last = `,"ExclusiveStartKey":` + string(page.LastEvaluatedKey)
		}
		flush()
	}
	return out
}

// TestViewIndex_EqualsTable: an index gives the same answers as a view, as a table that the endpoint
// writes, and without a mapping.
func TestViewIndex_EqualsTable(t *testing.T) {
	t.Parallel()
	view, _ := newViewServer(t, shopYAML, 0)
	table, _ := newViewServer(t, as("table"), 0)
	native := newTestServer(t)
	must(t, native, "CreateTable", `{"TableName":"Shop","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"PK","KeyType":"HASH"},{"AttributeName":"SK","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"PK","AttributeType":"S"},{"AttributeName":"SK","AttributeType":"S"},{"AttributeName":"GSI1PK","AttributeType":"S"},{"AttributeName":"GSI1SK","AttributeType":"S"},
			{"AttributeName":"Status","AttributeType":"S"},{"AttributeName":"Total","AttributeType":"N"},{"AttributeName":"Name","AttributeType":"S"}],
		"GlobalSecondaryIndexes":[{"IndexName":"GSI1","KeySchema":[{"AttributeName":"GSI1PK","KeyType":"HASH"},{"AttributeName":"GSI1SK","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}},
			{"IndexName":"ByTotal","KeySchema":[{"AttributeName":"Status","KeyType":"HASH"},{"AttributeName":"Total","KeyType":"RANGE"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["Name"]}},
			{"IndexName":"ByName","KeySchema":[{"AttributeName":"Name","KeyType":"HASH"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]}`)
	random := rand.New(rand.NewPCG(1, 2))
	lines := 0
	for round := range 10 {
		writeShop(t, random, 12, view, table, native)
		got := shopAnswers(t, view)
		for name, s := range map[string]*Server{"table": table, "native index": native} {
			if diff := gocmp.Diff(shopAnswers(t, s), got); diff != "" {
				t.Fatalf("round %d: a %s and a view differ (-table +view):\n%s", round, name, diff)
			}
		}
		lines += len(got) - len(shopReads)
	}
	if lines < 5*len(shopReads) {
		t.Errorf("%d lines of answers are few", lines)
	}
}

// TestViewIndex_Lag: an index gives the old answers until the lag of the Bigtable's views has passed.
func TestViewIndex_Lag(t *testing.T) {
	t.Parallel()
	const lag = 30 * time.Second
	view, now := newViewServer(t, shopYAML, lag)
	table, _ := newViewServer(t, as("table"), 0)
	random := rand.New(rand.NewPCG(3, 4))
	want := shopAnswers(t, table)
	for round := range 5 {
		writeShop(t, random, 12, view, table)
		now.Advance(lag - time.Second)
		if diff := gocmp.Diff(want, shopAnswers(t, view)); diff != "" {
			t.Fatalf("round %d: before the lag is over (-want +got):\n%s", round, diff)
		}
		now.Advance(time.Second)
		was := want
		if want = shopAnswers(t, table); slices.Equal(want, was) {
			t.Fatalf("round %d changes no answer", round)
		}
		if diff := gocmp.Diff(want, shopAnswers(t, view)); diff != "" {
			t.Fatalf("round %d: after the lag (-want +got):\n%s", round, diff)
		}
	}
}

// TestViewIndex_WriteCalls: Bigtable keeps a view, so writes of a table with views make the calls of a
// table without indexes.
func TestViewIndex_WriteCalls(t *testing.T) {
	t.Parallel()
	calls := func(text string) (out []string) {
		conn := newCountingConn()
		s, _ := newViewServer(t, text, 0, func(o *Options) {
			conn.ClientConnInterface, o.Conn = o.Conn, conn
		})
		for _, write := range [][2]string{
			{"PutItem", `"Item":{"PK":{"S":"CUSTOMER#1"},"SK":{"S":"PROFILE"},"GSI1PK":{"S":"OPEN"},"GSI1SK":{"S":"a"},"Name":{"S":"Ada"}}`},
			{"PutItem", `"Item":{"PK":{"S":"CUSTOMER#1"},"SK":{"S":"PROFILE"},"GSI1PK":{"S":"OPEN"},"GSI1SK":{"S":"b"},"Name":{"S":"Bob"}}`},
			{"UpdateItem", `"Key":{"PK":{"S":"CUSTOMER#1"},"SK":{"S":"PROFILE"}},"UpdateExpression":"SET GSI1SK = :s","ExpressionAttributeValues":{":s":{"S":"c"}}`},
			{"DeleteItem", `"Key":{"PK":{"S":"CUSTOMER#1"},"SK":{"S":"PROFILE"}}`},
		} {
			out = append(out, fmt.Sprint(write[0], " ", conn.callsOf(t, s, write[0], `{"TableName":"Shop",`+write[1]+`}`)))
		}
		return out
	}
	got, want, table := calls(shopYAML), calls(withoutIndexes(shopYAML)), calls(as("table"))
	if !slices.Equal(got, want) || slices.Equal(table, want) {
		t.Errorf("calls with views %v, without indexes %v, with tables %v", got, want, table)
	}
}

// TestViewIndex_Described: a view is a global index, and is read as one.
func TestViewIndex_Described(t *testing.T) {
	t.Parallel()
	s, _ := newViewServer(t, shopYAML, 0)
	must(t, s, "PutItem", `{"TableName":"Shop","Item":{"PK":{"S":"PRODUCT#1"},"SK":{"S":"PRODUCT#1"},"GSI1PK":{"S":"OPEN"},"GSI1SK":{"S":"a"},"Status":{"S":"OPEN"},"Total":{"N":"2"}}}`)
	var got struct {
		Table struct {
			GlobalSecondaryIndexes []struct {
				IndexName, IndexStatus string
				ItemCount              int
				Projection             struct {
					ProjectionType   string
					NonKeyAttributes []string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(must(t, s, "DescribeTable", `{"TableName":"Shop"}`)), &got); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(got.Table.GlobalSecondaryIndexes); text != "[{GSI1 ACTIVE 1 {ALL []}} {ByTotal ACTIVE 1 {INCLUDE [Name]}} {ByName ACTIVE 0 {KEYS_ONLY []}}]" {
		t.Errorf("described as %s", text)
	}
	for statement, want := range map[string]string{
		`SELECT PK, GSI1SK FROM Shop.GSI1 WHERE GSI1PK = 'OPEN' AND GSI1SK >= 'a'`:      `{"Items":[{"PK":{"S":"PRODUCT#1"},"GSI1SK":{"S":"a"}}]}`,
		`SELECT PK FROM \"Shop\".\"ByTotal\" WHERE Status = 'OPEN' ORDER BY Total DESC`: `{"Items":[{"PK":{"S":"PRODUCT#1"}}]}`,
	} {
		answer := must(t, s, "ExecuteStatement", `{"Statement":"`+statement+`"}`)
		if canonicalItem(answer) != canonicalItem(want) {
			t.Errorf("%s: %s, want %s", statement, answer, want)
		}
	}
	for _, c := range []struct{ operation, body, want string }{
		{"Query", `"IndexName":"GSI1","ConsistentRead":true,"KeyConditionExpression":"GSI1PK = :p","ExpressionAttributeValues":{":p":{"S":"OPEN"}}`, awserr.MsgConsistentOnGlobal},
		{"Scan", `"IndexName":"GSI1","ConsistentRead":true`, awserr.MsgConsistentOnGlobal},
		{"Query", `"IndexName":"ByTotal","Select":"ALL_ATTRIBUTES","KeyConditionExpression":"#s = :p","ExpressionAttributeNames":{"#s":"Status"},"ExpressionAttributeValues":{":p":{"S":"OPEN"}}`, fmt.Sprintf(awserr.MsgAllOnPartialGlobal, "ByTotal")},
		{"PutItem", `"Item":{"PK":{"S":"PRODUCT#1"},"SK":{"S":"PRODUCT#1"},"GSI1PK":{"N":"1"}}`, "Type mismatch for Index Key GSI1PK Expected: S Actual: N IndexName: GSI1"},
	} {
		_, err := s.Call(t.Context(), c.operation, []byte(`{"TableName":"Shop",`+c.body+`}`))
		if e, ok := awserr.As(err); !ok || e.Code != awserr.CodeValidation || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s %s: %v, want %s", c.operation, c.body, err, c.want)
		}
	}
}

// TestViewIndex_Segments: a parallel scan reads each entry of a view once, in one of the segments.
func TestViewIndex_Segments(t *testing.T) {
	t.Parallel()
	s, _ := newViewServer(t, shopYAML, 0)
	const items = 300 // enough for cuts
	for i := 0; i < items; i += 25 {
		var puts []string
		for n := i; n < i+25; n++ {
			puts = append(puts, fmt.Sprintf(`{"PutRequest":{"Item":{"PK":{"S":"PRODUCT#%d"},"SK":{"S":"PRODUCT#%d"},"Name":{"S":"name %d"}}}}`, n, n, n%7))
		}
		must(t, s, "BatchWriteItem", `{"RequestItems":{"Shop":[`+strings.Join(puts, ",")+`]}}`)
	}
	seen, parts := map[string]bool{}, 0
	key := regexp.MustCompile(`"PK":\{"S":"[^"]*"`)
	for segment := range 4 {
		found := key.FindAllString(must(t, s, "Scan", fmt.Sprintf(`{"TableName":"Shop","IndexName":"ByName","TotalSegments":4,"Segment":%d}`, segment)), -1)
		for _, k := range found {
			if seen[k] {
				t.Errorf("%s is in two segments", k)
			}
			seen[k] = true
		}
		if len(found) > 0 {
			parts++
		}
	}
	if len(seen) != items || parts < 2 {
		t.Errorf("%d of %d entries in %d segments", len(seen), items, parts)
	}
}

// queryOpen is a query of an index of shopYAML.
const queryOpen = `{"TableName":"Shop","IndexName":"GSI1","KeyConditionExpression":"GSI1PK = :p","ExpressionAttributeValues":{":p":{"S":"OPEN"}}}`

// TestViewIndex_Missing: a read of a missing view, or of one that Bigtable still fills, says so. The
// next start creates a missing view.
func TestViewIndex_Missing(t *testing.T) {
	t.Parallel()
	conn := &intercept.Conn{}
	s, _ := newViewServer(t, shopYAML, 0, func(o *Options) { conn.ClientConnInterface, o.Conn = o.Conn, conn })
	must(t, s, "PutItem", `{"TableName":"Shop","Item":{"PK":{"S":"PRODUCT#1"},"SK":{"S":"PRODUCT#1"},"GSI1PK":{"S":"OPEN"},"GSI1SK":{"S":"a"}}}`)
	conn.Before(func(_ context.Context, req any) error {
		if r, ok := req.(*btpb.ReadRowsRequest); ok && r.GetMaterializedViewName() != "" {
			return status.Error(codes.FailedPrecondition, "the view is being populated")
		}
		return nil
	})
	fails := func(code string, want ...string) {
		t.Helper()
		_, err := s.Call(t.Context(), "Query", []byte(queryOpen))
		e, ok := awserr.As(err)
		if !ok {
			e = foreignError(err)
		}
		for _, w := range want {
			if e.Code != code || !strings.Contains(e.Message, w) {
				t.Errorf("got %v, want %s with %q", e, code, w)
			}
		}
	}
	fails(awserr.CodeServiceUnavailable, "GSI1 of table Shop: Bigtable refuses to read the materialized view shop__GSI1, as it does until it has filled a view: try again later", "the view is being populated")
	conn.Before(nil)
	bt := nativeClient(s)
	if err := bt.DropView(t.Context(), "shop__GSI1"); err != nil {
		t.Fatal(err)
	}
	fails(awserr.CodeResourceNotFound, "index GSI1 of table Shop is the materialized view shop__GSI1, which does not exist: start this endpoint again, or run tabletop migrate load, to create it")
	next := newTestServer(t, func(o *Options) { o.Conn, o.Now, o.Mappings = s.opts.Conn, s.opts.Now, s.opts.Mappings })
	if got := must(t, next, "Query", queryOpen); !strings.Contains(got, `"Count":1,`) {
		t.Errorf("after the next start: %s", got)
	}
	// The views end with the table. Bigtable would not delete a table that a view reads.
	must(t, next, "DeleteTable", `{"TableName":"Shop"}`)
	if tables, err := bt.Tables(t.Context()); err != nil || slices.Contains(tables, "shop") {
		t.Errorf("after DeleteTable: %v, %v", tables, err)
	}
	if created, err := bt.EnsureTable(t.Context(), "shop__GSI1", []layout.Family{{Name: "a"}}, nil); err != nil || !created {
		t.Errorf("the id of the view is in use: %v", err)
	}
}

// TestViewIndex_Mapping: a mapping that is served later may add views, but not change or remove them.
func TestViewIndex_Mapping(t *testing.T) {
	t.Parallel()
	s, _ := newViewServer(t, withoutIndexes(shopYAML), 0)
	must(t, s, "PutItem", `{"TableName":"Shop","Item":{"PK":{"S":"PRODUCT#1"},"SK":{"S":"PRODUCT#1"},"GSI1PK":{"S":"OPEN"},"GSI1SK":{"S":"a"}}}`)
	open := func(text string) (*Server, error) {
		o := s.opts
		o.Mappings = []*mapping.Mapping{mappingOf(t, text)}
		return New(t.Context(), o)
	}
	added, err := open(shopYAML)
	if err != nil {
		t.Fatal(err)
	}
	added.store.Wait()
	if got := must(t, added, "Query", queryOpen); !strings.Contains(got, `"Count":1,`) {
		t.Errorf("in an added view: %s", got)
	}
	// Another process serves the table too, and writes make the view follow.
	must(t, s, "DeleteItem", `{"TableName":"Shop","Key":{"PK":{"S":"PRODUCT#1"},"SK":{"S":"PRODUCT#1"}}}`)
	if got := must(t, added, "Query", queryOpen); !strings.Contains(got, `"Count":0,`) {
		t.Errorf("after a deletion: %s", got)
	}
	if err := added.Close(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		as("none"): "index GSI1 of table Shop is the materialized view shop__GSI1 according to the mapping that the table was created with, but the current mapping does not have the index",
		strings.Replace(shopYAML, "projection: [Name], as", "projection: [more], as", 1): "index ByTotal, which the mapping declares as: view: the materialized view shop__ByTotal exists with another query, which cannot be changed: delete the view",
	} {
		if other, err := open(text); err == nil {
			t.Errorf("opened, want %s", want)
			_ = other.Close()
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := nativeClient(s).DropView(t.Context(), "shop__ByTotal"); err != nil {
		t.Fatal(err)
	}
	changed, err := open(strings.Replace(shopYAML, "projection: [Name], as", "projection: [more], as", 1))
	if err != nil {
		t.Fatal(err)
	}
	must(t, changed, "PutItem", `{"TableName":"Shop","Item":{"PK":{"S":"PRODUCT#1"},"SK":{"S":"PRODUCT#1"},"Status":{"S":"OPEN"},"Total":{"N":"1"},"Name":{"S":"Ada"},"more":{"S":"x"}}}`)
	if got := must(t, changed, "Scan", `{"TableName":"Shop","IndexName":"ByTotal"}`); strings.Contains(got, "Ada") || !strings.Contains(got, `"more":{"S":"x"}`) {
		t.Errorf("the changed view has %s", got)
	}
	if got := must(t, changed, "DescribeTable", `{"TableName":"Shop"}`); !strings.Contains(got, `"NonKeyAttributes":["more"]`) {
		t.Errorf("the changed view is described as %s", got)
	}
	if err := changed.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestViewIndex_Replaced: an index that a client creates with the name of a view but another key is an
// index of the endpoint, and a deleted index is not a view.
func TestViewIndex_Replaced(t *testing.T) {
	t.Parallel()
	s, _ := newViewServer(t, shopYAML, 0)
	must(t, s, "UpdateTable", `{"TableName":"Shop","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"GSI1"}}]}`)
	if created, err := nativeClient(s).EnsureView(t.Context(), "shop__GSI1", "SELECT a['x'] AS x, _key AS k FROM shop ORDER BY x, k"); err != nil || !created {
		t.Errorf("the view is left: %v", err)
	}
	must(t, s, "UpdateTable", `{"TableName":"Shop","AttributeDefinitions":[{"AttributeName":"more","AttributeType":"S"}],
		"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"GSI1","KeySchema":[{"AttributeName":"more","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]}`)
	s.store.Wait()
	must(t, s, "PutItem", `{"TableName":"Shop","Item":{"PK":{"S":"PRODUCT#1"},"SK":{"S":"PRODUCT#1"},"more":{"S":"x"}}}`)
	got := must(t, s, "Query", `{"TableName":"Shop","IndexName":"GSI1","KeyConditionExpression":"more = :x","ExpressionAttributeValues":{":x":{"S":"x"}}}`)
	if !strings.Contains(got, `"Count":1,`) {
		t.Errorf("the new index has %s", got)
	}
}

// TestViewIndex_Unsupported: a Bigtable without materialized views serves the table, but not the index.
func TestViewIndex_Unsupported(t *testing.T) {
	t.Parallel()
	conn := &intercept.Conn{}
	s, _ := newViewServer(t, shopYAML, 0, func(o *Options) {
		conn.ClientConnInterface, o.Conn = o.Conn, conn
		conn.Before(func(_ context.Context, req any) error {
			if _, ok := req.(interface{ GetMaterializedViewId() string }); ok {
				return status.Error(codes.Unimplemented, "unknown method CreateMaterializedView")
			}
			return nil
		})
	})
	must(t, s, "PutItem", `{"TableName":"Shop","Item":{"PK":{"S":"PRODUCT#1"},"SK":{"S":"PRODUCT#1"},"GSI1PK":{"S":"OPEN"},"GSI1SK":{"S":"a"}}}`)
	if _, err := s.Call(t.Context(), "Query", []byte(queryOpen)); err == nil {
		t.Error("a query of the index succeeds")
	}
}
