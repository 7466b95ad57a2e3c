package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// askDynamoDB calls an operation of a server's DynamoDB endpoint.
func askDynamoDB(t *testing.T, s *server, operation, request string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.env["AWS_ENDPOINT_URL_DYNAMODB"], strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Date", "20260101T000000Z")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=tabletop/20260101/us-east-1/dynamodb/aws4_request, "+
		"SignedHeaders=host;x-amz-date;x-amz-target, Signature="+strings.Repeat("0", 64))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// dynamoDB calls an operation that succeeds.
func dynamoDB(t *testing.T, s *server, operation, request string) string {
	t.Helper()
	status, answer := askDynamoDB(t, s, operation, request)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", operation, status, answer)
	}
	return answer
}

// createItems creates the table items, with more in the request.
func createItems(t *testing.T, s *server, more string) {
	t.Helper()
	dynamoDB(t, s, "CreateTable", `{"TableName": "items", `+more+`,
		"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
		"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}]}`)
}

func putItems(t *testing.T, s *server, from, until int) {
	t.Helper()
	for i := from; i < until; i++ {
		dynamoDB(t, s, "PutItem", fmt.Sprintf(`{"TableName": "items", "Item": {"pk": {"S": "a"}, "sk": {"N": "%d"}, "text": {"S": "number %d"}}}`, i, i))
	}
}

// largeItem is the size of an item in bytes: 390 KB, which cost as many write units.
const largeItem = 390 << 10

// TestServe_Throttle: a table of one unit per second recovers from a large item for minutes,
// but only with the flag.
func TestServe_Throttle(t *testing.T) {
	t.Parallel()
	put := `{"TableName": "items", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}, "text": {"S": "` + strings.Repeat("a", largeItem) + `"}}}`
	for _, c := range []struct {
		flags []string
		want  string // error of the second write; "" if it succeeds
	}{
		{nil, ""},
		{[]string{"--throttle=false"}, ""},
		{[]string{"--throttle"}, "TableWriteProvisionedThroughputExceeded"},
		{[]string{"--throttle=tables"}, "TableWriteProvisionedThroughputExceeded"},
	} {
		s := serveHere(t, append(c.flags, "--bigtable", "off", "--dynamodb", "127.0.0.1:0")...)
		createItems(t, s, `"ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}`)
		if status, answer := askDynamoDB(t, s, "PutItem", put); status != http.StatusOK {
			t.Errorf("serve %q: the first write: %d %s", c.flags, status, answer)
		}
		status, answer := askDynamoDB(t, s, "PutItem", put)
		if refused := status != http.StatusOK; refused != (c.want != "") || !strings.Contains(answer, c.want) {
			t.Errorf("serve %q: the second write: %d %s, want %q", c.flags, status, answer, c.want)
		}
	}
}

// TestServe_Messages: each operation has the wording of the region that the flag names.
func TestServe_Messages(t *testing.T) {
	t.Parallel()
	const newer, older = "Value at 'TransactItems' failed", "Value '[]' at 'transactItems' failed"
	for _, c := range []struct {
		flags             []string
		scan, transaction string
	}{
		{nil, "Value at 'Limit' failed", older},
		{[]string{"--messages=current"}, "Value at 'Limit' failed", older},
		{[]string{"--messages=eu-west-2"}, "Value at 'Limit' failed", newer},
		{[]string{"--messages=us-east-1"}, "Value '0' at 'limit' failed", older},
		{[]string{"--messages=classic"}, "Value '0' at 'limit' failed", older},
	} {
		s := serveHere(t, append(c.flags, "--bigtable", "off", "--dynamodb", "127.0.0.1:0")...)
		for _, q := range []struct{ operation, request, want string }{
			{"Scan", `{"TableName": "none", "Limit": 0}`, c.scan},
			{"TransactWriteItems", `{"TransactItems": []}`, c.transaction},
		} {
			if _, answer := askDynamoDB(t, s, q.operation, q.request); !strings.Contains(answer, q.want) {
				t.Errorf("serve %q: %s: %s, want %q", c.flags, q.operation, answer, q.want)
			}
		}
	}
}

// TestServe_Ready: the last line lists the settings of the endpoint that differ from the
// defaults.
func TestServe_Ready(t *testing.T) {
	t.Parallel()
	const plain = "# ready: project tabletop, instance tabletop, data in memory, discarded on exit"
	buckets, streams := t.TempDir(), t.TempDir()
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, plain},
		{[]string{"--throttle", "--buckets", buckets, "--kinesis-dir", streams}, plain + "; throttling by tables; buckets in " + buckets + "; Kinesis streams in " + streams},
		{[]string{"--kinesis-endpoint", "http://127.0.0.1:1"}, plain + "; Kinesis streams at http://127.0.0.1:1"},
	} {
		s := serveHere(t, append(c.flags, "--bigtable", "off", "--dynamodb", "127.0.0.1:0")...)
		if s.ready != c.want {
			t.Errorf("serve %q:\n got %s\nwant %s", c.flags, s.ready, c.want)
		}
	}
}

// TestServe_ThrottlePartitions: a table with enough units refuses requests to an overused key,
// but only if partitions are throttled.
func TestServe_ThrottlePartitions(t *testing.T) {
	t.Parallel()
	var puts []string
	for i := range 25 {
		puts = append(puts, fmt.Sprintf(`{"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"N": "%d"}, "text": {"S": "%s"}}}}`, i, strings.Repeat("a", largeItem)))
	}
	batch := `{"RequestItems": {"items": [` + strings.Join(puts, ", ") + `]}}`
	for throttle, want := range map[string]bool{"tables": false, "partitions": true} {
		s := serveHere(t, "--throttle="+throttle, "--bigtable", "off", "--dynamodb", "127.0.0.1:0")
		createItems(t, s, `"BillingMode": "PAY_PER_REQUEST", "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 40000}`)
		for {
			left := !strings.Contains(dynamoDB(t, s, "BatchWriteItem", batch), `"UnprocessedItems":{}`)
			if left && !want {
				t.Error("--throttle=tables leaves a part of a batch that the table has units for")
			}
			if left == want { // bounded by the test's deadline
				break
			}
		}
	}
}

// TestServe_Kinesis: changes stay in the log without a destination, go into a folder, and later
// to a server, which does not get those of the folder again.
func TestServe_Kinesis(t *testing.T) {
	t.Parallel()
	dir, streams := t.TempDir(), filepath.Join(t.TempDir(), "streams")
	endpoints := []string{"--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--data", dir}
	stop := func(s *server) {
		t.Helper()
		if code := s.end(t, syscall.SIGTERM); code != exitEqual {
			t.Fatalf("the server ends with %d: %s", code, s.stderr)
		}
	}
	s := serve(t, endpoints...)
	createItems(t, s, `"BillingMode": "PAY_PER_REQUEST"`)
	dynamoDB(t, s, "EnableKinesisStreamingDestination", `{"TableName": "items", "StreamArn": "arn:aws:kinesis:us-east-1:000000000000:stream/changes"}`)
	putItems(t, s, 0, 3)
	stop(s)

	s = serve(t, append(endpoints, "--kinesis-dir", streams)...)
	putItems(t, s, 3, 5)
	written := func() []string {
		text, err := os.ReadFile(filepath.Join(streams, "changes.jsonl"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.SplitAfter(string(text), "\n")
	}
	for len(written()) < 6 { // bounded by the test's deadline
		dynamoDB(t, s, "DescribeKinesisStreamingDestination", `{"TableName": "items"}`)
	}
	for i, line := range written()[:5] {
		if want := fmt.Sprintf(`"NewImage":{"pk":{"S":"a"},"sk":{"N":"%d"},"text":{"S":"number %d"}}`, i, i); !strings.Contains(line, want) {
			t.Errorf("line %d is %s, want %s", i, line, want)
		}
	}
	stop(s)

	delivered := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Records []struct{ Data []byte } }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		answers := []struct{ SequenceNumber string }{}
		for _, record := range in.Records {
			delivered <- string(record.Data)
			answers = append(answers, struct{ SequenceNumber string }{"1"})
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"Records": answers}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	s = serve(t, append(endpoints, "--kinesis-endpoint", server.URL)...)
	putItems(t, s, 5, 6)
	for got := ""; !strings.Contains(got, "number 5"); {
		select {
		case got = <-delivered:
		case <-t.Context().Done():
			t.Fatal("the test is over")
		}
	}
	stop(s)
}

// TestServe_ViewIndex: serve creates the views of a mapping's indexes, even after a reset. An index
// shows a write after --view-lag.
func TestServe_ViewIndex(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--view-lag", "1h",
		"--mapping", filepath.Join("..", "..", "fixtures", "subjects", "s9-view-index", "mapping.yaml"))
	ctl(t, s, exitEqual, "freeze")
	has := func(count string) {
		t.Helper()
		query := `{"TableName": "shop", "IndexName": "GSI1", "KeyConditionExpression": "GSI1PK = :p", "ExpressionAttributeValues": {":p": {"S": "OPEN"}}}`
		if got := dynamoDB(t, s, "Query", query); !strings.Contains(got, `"Count":`+count+",") {
			t.Errorf("the index has %s, want %s items", got, count)
		}
	}
	dynamoDB(t, s, "PutItem", `{"TableName": "shop", "Item": {"PK": {"S": "C1"}, "SK": {"S": "O1"}, "GSI1PK": {"S": "OPEN"}, "GSI1SK": {"S": "2024"}}}`)
	has("0")
	ctl(t, s, exitEqual, "advance", "1h")
	has("1")
	ctl(t, s, exitEqual, "reset")
	has("0")
}

// exported waits for an export and returns its description.
func exported(t *testing.T, s *server, more string) string {
	t.Helper()
	answer := dynamoDB(t, s, "ExportTableToPointInTime", `{"TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/items", "S3Bucket": "bucket"`+more+`}`)
	for strings.Contains(answer, `"ExportStatus":"IN_PROGRESS"`) {
		var got struct{ ExportDescription struct{ ExportArn string } }
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatal(err)
		}
		answer = dynamoDB(t, s, "DescribeExport", `{"ExportArn": "`+got.ExportDescription.ExportArn+`"}`)
	}
	return answer
}

// TestServe_Buckets: `tabletop migrate` verifies and loads a server's full and incremental
// exports unchanged, and another table imports them. Acceptance points 17 and 18 of the
// DynamoDB specification, in the binary.
func TestServe_Buckets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bucket"), 0o777); err != nil {
		t.Fatal(err)
	}
	s := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--buckets", dir)
	ctl(t, s, exitEqual, "freeze")
	createItems(t, s, `"BillingMode": "PAY_PER_REQUEST"`)
	dynamoDB(t, s, "UpdateContinuousBackups", `{"TableName": "items", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}`)
	putItems(t, s, 0, 20)
	var description struct {
		ExportDescription struct {
			ExportStatus, ExportManifest string
			ExportTime                   json.Number
		}
	}
	decode := func(answer string) {
		t.Helper()
		if err := json.Unmarshal([]byte(answer), &description); err != nil || description.ExportDescription.ExportStatus != "COMPLETED" {
			t.Fatalf("%v: %s", err, answer)
		}
	}
	decode(exported(t, s, ""))
	data := filepath.ToSlash(filepath.Join(filepath.Dir(description.ExportDescription.ExportManifest), "data"))
	ctl(t, s, exitEqual, "advance", "1h")
	putItems(t, s, 15, 25)
	dynamoDB(t, s, "DeleteItem", `{"TableName": "items", "Key": {"pk": {"S": "a"}, "sk": {"N": "3"}}}`)
	ctl(t, s, exitEqual, "advance", "1h")
	decode(exported(t, s, `, "ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": {"ExportFromTime": `+description.ExportDescription.ExportTime.String()+`}`))

	const all = "24 items, 24 rows, 0 differences, 0 sidecar cells"
	source, mapping := filepath.Join(dir, "bucket"), filepath.Join(t.TempDir(), "items.yaml")
	if out, code := tabletop(t, "migrate", "verify", "--source", source, "--write-mapping", mapping); code != exitEqual || !strings.Contains(out, all) {
		t.Errorf("verify exits %d: %s", code, out)
	}
	loaded := filepath.Join(t.TempDir(), "loaded")
	if out, code := tabletop(t, "migrate", "load", "--source", source, "--mapping", mapping, "--data", loaded); code != exitEqual {
		t.Errorf("load exits %d: %s", code, out)
	}
	const scan = `{"TableName": "items"}`
	want := dynamoDB(t, s, "Scan", scan)
	if got := dynamoDB(t, serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--data", loaded, "--mapping", mapping), "Scan", scan); got != want {
		t.Errorf("loaded is %s, want %s", got, want)
	}

	for {
		answer := dynamoDB(t, s, "ImportTable", `{"ClientToken": "one", "InputFormat": "DYNAMODB_JSON", "InputCompressionType": "GZIP",
			"S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "`+data+`"}, "TableCreationParameters": {"TableName": "copy", "BillingMode": "PAY_PER_REQUEST",
			"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
			"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}]}}`)
		if !strings.Contains(answer, `"ImportStatus":"IN_PROGRESS"`) {
			if !strings.Contains(answer, `"ImportStatus":"COMPLETED"`) {
				t.Errorf("imported: %s", answer)
			}
			break
		}
	}
	if got := dynamoDB(t, s, "Scan", `{"TableName": "copy", "Select": "COUNT"}`); !strings.Contains(got, `"Count":20,`) {
		t.Errorf("imported %s", got)
	}
}

// TestServe_NoBuckets: without the flag exports are refused, and the error names it.
func TestServe_NoBuckets(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0")
	status, answer := askDynamoDB(t, s, "ListExports", "{}")
	if status != http.StatusBadRequest || !strings.Contains(answer, "UnknownOperationException") || !strings.Contains(answer, "--buckets") {
		t.Errorf("%d %s", status, answer)
	}
}
