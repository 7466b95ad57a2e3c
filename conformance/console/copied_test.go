package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// copying replaces the clipboard of the page with one that the test can read.
const copying = `navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }, true`

// copied clicks the last button with that label, and returns the copied text.
func (p *tab) copied(label string) string {
	p.t.Helper()
	ask[bool](p, "globalThis.copied = null, true")
	ask[bool](p, fmt.Sprintf(`[...document.querySelectorAll('button')].filter((b) => b.textContent === %q && !b.closest('.risk')).at(-1).click(), true`, label))
	p.until("globalThis.copied !== null")
	return ask[string](p, "globalThis.copied")
}

// declared is a declaration of the error alone, which the function of a piece has as a parameter.
var declared = regexp.MustCompile(`(?m)^err := client`)

// builds fails the test unless pieces of code compile in a test that has the clients of both
// endpoints.
func builds(t *testing.T, pieces ...string) {
	t.Helper()
	var text strings.Builder
	text.WriteString(`package copied

import (
	"context"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/testkit"
)

var (
	_ = status.Error
	_ = codes.OK
	_ types.AttributeValue
	_ dynamodb.Client
	_ = aws.String
	_ bigtable.Filter
	_ time.Duration
)
`)
	for _, piece := range pieces {
		fmt.Fprintf(&text, "\nfunc _(ctx context.Context, env *testkit.Env, client *bigtable.Client, err error) {\n%s\n}\n", declared.ReplaceAllString(piece, "err = client"))
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "copied.go")
	// The compiler gets a virtual folder in the main module.
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(root, "testkit", "testdata", "copied", "copied.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {place: file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{file: []byte(text.String()), filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "./testkit/testdata/copied")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("the copied code does not compile: %v\n%s\n%s", err, out, text.String())
	}
}

// TestCopied_Faults: the code of a fault has all of its conditions, before and after it is
// armed, and compiles.
func TestCopied_Faults(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.createTable(t, "rows", "f")
	p := open(t, ctx, srv)
	p.visit("/lab")
	ask[bool](p, copying)
	ask[any](p, `fetch('/api/v1/snapshots', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"name":"base"}' })`)
	const said = `"fault of the control API"`
	var pieces []string
	for _, c := range []struct{ fault, want string }{
		{
			`{"endpoint":"bigtable","method":"MutateRow","effect":"fail","code":"CANCELLED","message":"a\"b\\\n\u202e","table":"rows","skip":2,"times":1}`,
			`env.Fail("MutateRow", status.Error(codes.Canceled, "a\"b\\\x0a\u202e"), testkit.OnTable("rows"), testkit.Skip(2), testkit.Times(1))`,
		},
		{
			`{"endpoint":"bigtable","method":"MutateRow","effect":"fail","code":"FAILED_PRECONDITION","row":{"base64":"/wAi"},"applied":true}`,
			`env.Fail("MutateRow", status.Error(codes.FailedPrecondition, ` + said + `), testkit.OnRow("\xff\x00\x22"), testkit.Applied())`,
		},
		{
			`{"endpoint":"bigtable","method":"ReadRows","effect":"cut","code":"Unavailable","rows":2,"row":{"text":"é"},"behindDynamoDB":true}`,
			`env.CutReadRows(2, status.Error(codes.Unavailable, ` + said + `), testkit.OnRow("é"), testkit.BehindDynamoDB())`,
		},
		{
			`{"endpoint":"bigtable","method":"*","effect":"delay","delay":"1m1.5s","probability":0.25}`,
			`env.Latency("*", 1*time.Minute + 1*time.Second + 500*time.Millisecond, testkit.WithProbability(0.25))`,
		},
		{`{"endpoint":"bigtable","method":"MutateRow","effect":"duplicate","table":"rows"}`, `env.Duplicate("MutateRow", testkit.OnTable("rows"))`},
		{
			`{"endpoint":"dynamodb","method":"UpdateItem","effect":"fail","code":"ThrottlingException","table":"things","item":{"id":{"S":"<b>"}}}`,
			`env.FailDynamoDB("UpdateItem", testkit.Throttling, testkit.OnTable("things"), testkit.OnItem(map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "<b>"}}))`,
		},
		{
			`{"endpoint":"dynamodb","method":"*","effect":"fail","code":"TransactionCanceledException","message":"a\"b","reasons":["None","ConditionalCheckFailed"]}`,
			`env.FailDynamoDB("*", testkit.TransactionCanceled, testkit.WithMessage("a\"b"), testkit.WithReasons("None", "ConditionalCheckFailed"))`,
		},
		{
			`{"endpoint":"dynamodb","method":"BatchWriteItem","effect":"unprocessed","item":{"id":{"B":"AP8="},"n":{"N":"1"}}}`,
			`env.Unprocessed("BatchWriteItem", testkit.OnItem(map[string]types.AttributeValue{"id": &types.AttributeValueMemberB{Value: []byte("\x00\xff")}, "n": &types.AttributeValueMemberN{Value: "1"}}))`,
		},
		{`{"endpoint":"dynamodb","method":"GetItem","effect":"delay","delay":"90s"}`, `env.DynamoDBLatency("GetItem", 1*time.Minute + 30*time.Second)`},
		{`{"endpoint":"dynamodb","method":"GetItem","effect":"stale","snapshot":"base"}`, `env.StaleReads("GetItem", env.Snapshot())`},
	} {
		p.fill("textarea", c.fault)
		if got := p.copied("Copy as testkit code"); got != c.want {
			t.Errorf("before it is armed %s is\n%s, want\n%s", c.fault, got, c.want)
		}
		faults := ask[int](p, "document.querySelectorAll('[data-fault]').length")
		p.pushButton("Arm fault")
		p.until(fmt.Sprintf("document.querySelectorAll('[data-fault]').length === %d", faults+1))
		pieces = append(pieces, c.want)
	}
	// They are sorted by endpoint, in their order.
	if got, want := p.copied("Copy all as testkit code"), strings.Join(pieces, "\n"); got != want {
		t.Errorf("armed they are\n%s, want\n%s", got, want)
	}
	pieces = append(pieces, strings.Join(pieces, "\n"))
	for i := range ask[int](p, "document.querySelector('[aria-label=Preset]').options.length") {
		ask[bool](p, fmt.Sprintf(`((s) => { s.selectedIndex = %d; s.dispatchEvent(new Event('change')); return true; })(document.querySelector('[aria-label=Preset]'))`, i))
		pieces = append(pieces, p.copied("Copy as testkit code"))
	}
	pieces = append(pieces, ask[[]string](p, `(async () => {
		const out = [];
		for (const b of [...document.querySelectorAll('button')].filter((b) => b.textContent === 'Copy as testkit code')) {
			globalThis.copied = null;
			b.click();
			for (let i = 0; i < 60_000 && globalThis.copied === null; i++) await new Promise((done) => setTimeout(done, 5));
			out.push(globalThis.copied);
		}
		return out;
	})()`)...)
	p.sound("copy")
	builds(t, pieces...)

	// The fields of the form make the same faults: each shows for its endpoint, effect and error.
	set := func(label, value string) {
		t.Helper()
		if !ask[bool](p, fmt.Sprintf(`((el) => { el.value = %q; el.dispatchEvent(new Event('change', { bubbles: true })); return !el.closest('label').hidden; })(document.querySelector('[aria-label=%q]'))`, value, label)) {
			t.Errorf("the field %s is hidden", label)
		}
	}
	p.fill("textarea", `{"endpoint":"bigtable","method":"MutateRow","effect":"fail","code":"UNAVAILABLE","row":{"text":"a"}}`)
	set("Endpoint", "dynamodb")
	set("Method", "TransactWriteItems")
	set("Error", "TransactionCanceled")
	set("Reasons", "None, ConditionalCheckFailed")
	set("Times", "2")
	if got, want := p.copied("Copy as testkit code"), `env.FailDynamoDB("TransactWriteItems", testkit.TransactionCanceled, testkit.Times(2), testkit.WithReasons("None", "ConditionalCheckFailed"))`; got != want {
		t.Errorf("the form makes\n%s, want\n%s", got, want)
	}
	set("Effect", "delay")
	set("Delay", "90s")
	if got, want := p.copied("Copy as testkit code"), `env.DynamoDBLatency("TransactWriteItems", 1*time.Minute + 30*time.Second, testkit.Times(2))`; got != want {
		t.Errorf("the form makes\n%s, want\n%s", got, want)
	}

	// Conditions that testkit cannot express are not omitted.
	p.fill("textarea", `{"endpoint":"dynamodb","method":"PutItem","effect":"fail","code":"Throttling","item":{"id":{"L":[]}}}`)
	ask[bool](p, "globalThis.copied = null, true")
	ask[bool](p, `[...document.querySelectorAll('button')].filter((b) => b.textContent === 'Copy as testkit code' && !b.closest('.risk')).at(-1).click(), true`)
	p.until("document.querySelector('.toast')?.textContent.includes('testkit.OnItem accepts')")
	if got := ask[bool](p, "globalThis.copied === null"); !got {
		t.Error("half of a fault is copied")
	}
}

// TestCopied_Query: the code of a read has its range, its filter and its options, and compiles.
func TestCopied_Query(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	srv.set(t, "rows", "a", btclient.Cell{Family: "f", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte("v")})
	p := open(t, ctx, srv)
	p.visit("/query")
	ask[bool](p, copying)
	ask[bool](p, `[...document.querySelectorAll('[role=tab]')].find((b) => b.textContent === 'ReadRows').click(), true`)
	const read = `err := client.Open("rows").ReadRows(ctx, %s, func(r bigtable.Row) bool {` + "\n\treturn true\n" + `}, bigtable.LimitRows(25)%s)`
	var pieces []string
	for _, c := range []struct{ prefix, start, end, match, filter, rows, options string }{
		{"", "", "", "", "", `bigtable.NewRange("", "")`, ""},
		{`a\xff`, "", "", "", "", `bigtable.PrefixRange("a\xff")`, ""},
		{`a\xff`, "ab", `b\x00`, "", "", `bigtable.NewRange("a\xff", "b")`, ""},
		{"é", "", "", `a.*"`, "", `bigtable.PrefixRange("é")`, `, bigtable.RowFilter(bigtable.RowKeyFilter("a.*\""))`},
		{
			"", "a", "", "a.*", `{"chain": {"filters": [{"familyNameRegexFilter": "f"}, {"cells_per_column_limit_filter": 1}]}}`,
			`bigtable.NewRange("a", "")`, `, bigtable.RowFilter(bigtable.ChainFilters(bigtable.RowKeyFilter("a.*"), bigtable.ChainFilters(bigtable.FamilyFilter("f"), bigtable.LatestNFilter(1))))`,
		},
		{
			"", "", "", "", `{"condition":{"predicateFilter":{"columnRangeFilter":{"familyName":"f","startQualifierOpen":"YQ==","endQualifierClosed":"Yg=="}},"trueFilter":{"interleave":{"filters":[{"valueRangeFilter":{"endValueOpen":"_w=="}},{"timestampRangeFilter":{"startTimestampMicros":"1000"}}]}}}}`,
			`bigtable.NewRange("", "")`,
			`, bigtable.RowFilter(bigtable.ConditionFilter(bigtable.ColumnRangeFilter("f", "a\x00", "b\x00"), bigtable.InterleaveFilters(bigtable.ValueRangeFilter(nil, []byte("\xff")), bigtable.TimestampRangeFilterMicros(1000, 0)), nil))`,
		},
		{
			"", "", "", "", `{"chain":{"filters":[{"passAllFilter":true},{"blockAllFilter":true},{"rowKeyRegexFilter":"YQ=="},{"rowSampleFilter":0.5},{"columnQualifierRegexFilter":"cQ=="},{"valueRegexFilter":"dg=="},{"cellsPerRowOffsetFilter":1},{"cellsPerRowLimitFilter":2},{"stripValueTransformer":true},{"applyLabelTransformer":"l"}]}}`,
			`bigtable.NewRange("", "")`,
			`, bigtable.RowFilter(bigtable.ChainFilters(bigtable.PassAllFilter(), bigtable.BlockAllFilter(), bigtable.RowKeyFilter("a"), bigtable.RowSampleFilter(0.5), bigtable.ColumnFilter("q"), bigtable.ValueFilter("v"), bigtable.CellsPerRowOffsetFilter(1), bigtable.CellsPerRowLimitFilter(2), bigtable.StripValueFilter(), bigtable.LabelFilter("l")))`,
		},
	} {
		for label, value := range map[string]string{"Prefix": c.prefix, "From": c.start, "Before": c.end, "Matching": c.match, "A filter, as JSON": c.filter} {
			p.fill("[aria-label='"+label+"']", value)
		}
		want := fmt.Sprintf(read, c.rows, c.options)
		if got := p.copied("Copy as Go"); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
		pieces = append(pieces, want)
	}
	ask[bool](p, "document.querySelector('input[type=checkbox]').click(), true")
	reversed := p.copied("Copy as Go")
	if !strings.HasSuffix(reversed, ", bigtable.ReverseScan())") {
		t.Errorf("backwards it is %s", reversed)
	}
	for filter, said := range map[string]string{`{"sink":true}`: "sink", `{}`: "that is empty", `{"passAllFilter":true,"sink":true}`: "with passAllFilter and sink"} {
		p.fill("[aria-label='A filter, as JSON']", filter)
		p.pushButton("Copy as Go")
		p.until("document.querySelector('.toast')?.textContent.endsWith('no function for the filter " + said + ".')")
	}
	builds(t, append(pieces, reversed)...)
}

// TestCopied_Request: Items opens its read in Query, and a request of Query is code for each client. The Go code
// compiles.
func TestCopied_Request(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	p := open(t, ctx, srv)
	p.visit("/d/things")
	p.until("[...document.querySelectorAll('main a')].some((a) => a.textContent === 'Open in Query' && a.checkVisibility() && a.getAttribute('href').startsWith('/query?op=Scan&request=%7B%22TableName%22%3A%22things%22'))")

	codes := func(operation, request string) map[string]string {
		t.Helper()
		p.visit("/query?op=" + operation + "&request=" + url.QueryEscape(request))
		p.pushButton("Copy as…")
		return ask[map[string]string](p, "Object.fromEntries([...document.querySelectorAll('dialog b')].map((b) => [b.textContent, b.closest('.bar').nextSibling.textContent]))")
	}
	got := codes("PutItem", `{"TableName":"things","Item":{"id":{"S":"a\"é"},"b":{"B":"/wAi"},"l":{"L":[{"N":"1.5"},{"BOOL":true},{"NULL":true}]},"m":{"M":{"s":{"SS":["x"]},"bs":{"BS":["/w=="]}}}},"ReturnConsumedCapacity":"TOTAL"}`)
	for client, want := range map[string]string{
		"Go": `out, err := client.PutItem(ctx, &dynamodb.PutItemInput{
	TableName: aws.String("things"),
	Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a\"é"}, "b": &types.AttributeValueMemberB{Value: []byte("\xff\x00\x22")}, "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "1.5"}, &types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberNULL{Value: true}}}, "m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"s": &types.AttributeValueMemberSS{Value: []string{"x"}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{[]byte("\xff")}}}}},
	ReturnConsumedCapacity: types.ReturnConsumedCapacity("TOTAL"),
})`,
		"Python": `answer = client.put_item(
    TableName="things",
    Item={"id": {"S": "a\"é"}, "b": {"B": base64.b64decode("/wAi")}, "l": {"L": [{"N": "1.5"}, {"BOOL": True}, {"NULL": True}]}, "m": {"M": {"s": {"SS": ["x"]}, "bs": {"BS": [base64.b64decode("/w==")]}}}},
    ReturnConsumedCapacity="TOTAL",
)`,
		"JavaScript": `const answer = await client.send(new PutItemCommand({
  TableName: "things",
  Item: {"id": {"S": "a\"é"}, "b": {"B": Buffer.from("/wAi", "base64")}, "l": {"L": [{"N": "1.5"}, {"BOOL": true}, {"NULL": true}]}, "m": {"M": {"s": {"SS": ["x"]}, "bs": {"BS": [Buffer.from("/w==", "base64")]}}}},
  ReturnConsumedCapacity: "TOTAL",
}));`,
		"Java": `var answer = client.putItem(PutItemRequest.builder()
    .tableName("things")
    .item(Map.ofEntries(Map.entry("id", AttributeValue.fromS("a\"é")), Map.entry("b", AttributeValue.fromB(SdkBytes.fromByteArray(Base64.getDecoder().decode("/wAi")))), Map.entry("l", AttributeValue.fromL(List.of(AttributeValue.fromN("1.5"), AttributeValue.fromBool(true), AttributeValue.fromNul(true)))), Map.entry("m", AttributeValue.fromM(Map.ofEntries(Map.entry("s", AttributeValue.fromSs(List.of("x"))), Map.entry("bs", AttributeValue.fromBs(List.of(SdkBytes.fromByteArray(Base64.getDecoder().decode("/w=="))))))))))
    .returnConsumedCapacity("TOTAL")
    .build());`,
	} {
		if got[client] != want {
			t.Errorf("%s:\n%s\nwant\n%s", client, got[client], want)
		}
	}
	if !strings.HasPrefix(got["aws"], "AWS_ACCESS_KEY_ID=") || !strings.HasPrefix(got["tabletop ctl"], "tabletop ctl query PutItem '{") {
		t.Errorf("for shells: %s\n%s", got["aws"], got["tabletop ctl"])
	}
	query := codes("Query", `{"TableName":"things","KeyConditionExpression":"#k = :k","ExpressionAttributeNames":{"#k":"id"},"ExpressionAttributeValues":{":k":{"S":"a"}},"Limit":2,"ScanIndexForward":false}`)
	var pieces []string
	for _, piece := range []string{got["Go"], query["Go"]} {
		pieces = append(pieces, "dynamo := env.DynamoDB(nil)\n"+strings.Replace(piece, "client.", "dynamo.", 1)+"\n_ = out")
	}
	builds(t, pieces...)
	if batch := codes("BatchGetItem", `{"RequestItems":{"things":{"Keys":[{"id":{"S":"a"}}]}}}`); batch["Go"] != "" || batch["Python"] == "" {
		t.Errorf("a batch is %q", batch)
	}
	p.sound("the code of requests")
}

// TestCopied_Calls: the calls of a request can be copied as Go code, which compiles, and a call that the client lacks
// is refused.
func TestCopied_Calls(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.send(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"}}}`)
	srv.send(t, "GetItem", `{"TableName":"things","Key":{"id":{"S":"a"}}}`)
	p := open(t, ctx, srv)
	p.visit("/requests?f=op:GetItem")
	ask[bool](p, copying)
	p.until("!!document.querySelector('[data-request]')")
	p.click("[data-request]")
	p.until("!!document.querySelector('.call')")
	read := p.copied("Copy call as Go")
	m, err := srv.ddb.Mapping(t.Context(), "things")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(read, `err := client.Open("`+m.TargetTable()+`").ReadRows(ctx, bigtable.SingleRow("a"), func(r bigtable.Row) bool {`) {
		t.Errorf("a read is\n%s", read)
	}
	pieces := []string{read}
	for _, c := range []struct{ operation, request, want string }{
		{"ReadRows", `{"rows":{"rowKeys":["YQ==","Yg=="]},"rowsLimit":"3","reversed":true}`, `bigtable.RowList{"a", "b"}, func(r bigtable.Row) bool {` + "\n\treturn true\n" + `}, bigtable.LimitRows(3), bigtable.ReverseScan())`},
		{"ReadRows", `{"rows":{"rowKeys":["YQ=="],"rowRanges":[{"startKeyOpen":"Yg==","endKeyClosed":"Yw=="}]},"filter":{"passAllFilter":true}}`, `bigtable.RowRangeList{bigtable.NewRange("a", "a\x00"), bigtable.NewRange("b\x00", "c\x00")}`},
		{"MutateRow", `{"rowKey":"YQ==","mutations":[{"setCell":{"familyName":"f","columnQualifier":"cQ==","timestampMicros":"-1","value":"/w=="}},{"deleteFromColumn":{"familyName":"f","columnQualifier":"cQ==","timeRange":{"startTimestampMicros":"1000"}}},{"deleteFromColumn":{"familyName":"f"}},{"deleteFromFamily":{"familyName":"f"}},{"deleteFromRow":{}},{"addToCell":{"familyName":"f","columnQualifier":{"rawValue":"cQ=="},"timestamp":{"rawTimestampMicros":"1000"},"input":{"intValue":"2"}}},{"mergeToCell":{"familyName":"f","columnQualifier":{"rawValue":"cQ=="},"timestamp":{"rawTimestampMicros":"1000"},"input":{"rawValue":"cQ=="}}}]}`, `mut.Set("f", "q", bigtable.ServerTime, []byte("\xff"))`},
		{"MutateRows", `{"entries":[{"rowKey":"YQ==","mutations":[{"deleteFromRow":{}}]},{"rowKey":"Yg==","mutations":[{"deleteFromRow":{}}]}]}`, `ApplyBulk(ctx, []string{"a", "b"}, []*bigtable.Mutation{mut0, mut1})`},
		{"CheckAndMutateRow", `{"rowKey":"YQ==","predicateFilter":{"cellsPerColumnLimitFilter":1},"falseMutations":[{"deleteFromRow":{}}]}`, `mut := bigtable.NewCondMutation(bigtable.LatestNFilter(1), nil, otherwise)`},
		{"ReadModifyWriteRow", `{"rowKey":"YQ==","rules":[{"familyName":"f","columnQualifier":"cQ==","incrementAmount":"2"},{"familyName":"f","columnQualifier":"cQ==","appendValue":"cQ=="}]}`, `rmw.Increment("f", "q", 2)`},
	} {
		got := ask[string](p, fmt.Sprintf("import('/static/gocode.js').then((m) => m.callCode(%q, {tableName: 'projects/p/instances/i/tables/t', ...%s}))", c.operation, c.request))
		if !strings.Contains(got, c.want) || !strings.Contains(got, `client.Open("t")`) {
			t.Errorf("%s is\n%s, want in it\n%s", c.operation, got, c.want)
		}
		for _, unused := range []string{"errs, err := ", "row, err := "} {
			if strings.Contains(got, unused) {
				got += "\n_ = " + unused[:strings.Index(unused, ",")]
			}
		}
		pieces = append(pieces, got)
	}
	builds(t, pieces...)
	if got := ask[string](p, "import('/static/gocode.js').then((m) => m.callCode('SampleRowKeys', {tableName: 't'})).catch((err) => err.message)"); got != "SampleRowKeys of this request has no Go code here." {
		t.Errorf("another call: %s", got)
	}
	p.sound("the code of calls")
}
