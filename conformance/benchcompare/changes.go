package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
)

// changesCommand is the argument that makes the program a client of one DynamoDB endpoint.
const changesCommand = "changes"

// changes measures the cost of recording the changes of a table and of reading them, and the
// cost of a statement compared with the ordinary request.
func (b *bench) changes(ctx context.Context, server string, rep int) error {
	return b.own(ctx, server, rep, changesCommand, "-rows", strconv.Itoa(changeItems), "-ops", "4000")
}

// The tables: one with a stream, one without. Items have about 1 KB and are written
// repeatedly.
const (
	recordedTable   = "recorded"
	unrecordedTable = "unrecorded"
	changeItems     = 1000
	changeText      = 980 // bytes
	changeTurns     = 4   // of each of two compared workloads
)

// changeLoad is a load with a client of the server's DynamoDB endpoint.
type changeLoad struct {
	load
	endpoint string
	client   *http.Client
	iterator string // at the beginning of the stream
}

// measureChanges creates the tables and runs the workloads. Compared workloads run in turn, so
// that other work on the machine affects both.
func measureChanges(ctx context.Context, work load, addr string) ([]result, error) {
	l := &changeLoad{load: work, endpoint: "http://" + addr, client: &http.Client{}}
	defer l.client.CloseIdleConnections()
	if err := l.fill(ctx); err != nil {
		return nil, fmt.Errorf("filling the tables: %w", err)
	}
	var out []result
	for _, pair := range [][2]changeWorkload{
		// Before it is read, the log holds the writes that filled the table.
		{{"changes/getrecords1000", l.ops / 40, l.getRecords}, {"changes/query1000", l.ops / 40, l.query}},
		{{"changes/executestatement", l.ops, l.executeStatement}, {"changes/get", l.ops, l.get}},
		{{"changes/put", l.ops, l.on(recordedTable, l.put)}, {"changes/put/off", l.ops, l.on(unrecordedTable, l.put)}},
		{{"changes/update", l.ops, l.on(recordedTable, l.update)}, {"changes/update/off", l.ops, l.on(unrecordedTable, l.update)}},
		{
			{"changes/transactwrite10", l.ops / 10, l.on(recordedTable, l.transact)},
			{"changes/transactwrite10/off", l.ops / 10, l.on(unrecordedTable, l.transact)},
		},
	} {
		var both [2][]result
		for seed := range changeTurns {
			for i, w := range pair {
				turn := l.load
				turn.seed, turn.ops = uint64(seed), max(1, w.ops/changeTurns)
				both[i] = append(both[i], turn.run(ctx, 1, w.call))
			}
		}
		for i, w := range pair {
			r := together(both[i])
			r.Workload = w.name
			out = append(out, r)
		}
	}
	return out, ctx.Err()
}

type changeWorkload struct {
	name string
	ops  int
	call func(context.Context, *rand.Rand) error
}

// together combines the turns of a workload: sums, means weighted by the number of calls, and the longest
// call.
func together(turns []result) result {
	var all result
	for _, r := range turns {
		weight := float64(r.Ops)
		all.Ops += r.Ops
		all.Seconds += r.Seconds
		all.P50us += weight * r.P50us
		all.P99us += weight * r.P99us
		all.ServerUs += weight * r.ServerUs
		all.MaxUs = max(all.MaxUs, r.MaxUs)
		if r.Errors > 0 {
			all.Errors, all.Note = all.Errors+r.Errors, r.Note
		}
	}
	if n := float64(all.Ops); n > 0 {
		all.P50us, all.P99us, all.ServerUs = all.P50us/n, all.P99us/n, all.ServerUs/n
		all.OpsPerS = n / all.Seconds
	}
	return all
}

// call sends one request, whose signature the server does not verify, and decodes its answer
// into out unless that is nil.
func (l *changeLoad) call(ctx context.Context, service, operation, body string, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.endpoint, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", service+"_20120810."+operation)
	r.Header.Set("X-Amz-Date", "20261120T120000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20261120/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
	resp, err := l.client.Do(r)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.300s", operation, resp.Status, answer)
	}
	if out == nil {
		return nil
	}
	if counted, ok := out.(*countOf); ok {
		if n := bytes.Count(answer, []byte(counted.text)); n != counted.want {
			return fmt.Errorf("%s: %d items, want %d", operation, n, counted.want)
		}
		return nil
	}
	return json.Unmarshal(answer, out)
}

// countOf is the wanted number of occurrences of a text in an answer.
type countOf struct {
	text string
	want int
}

const (
	plainService   = "DynamoDB"
	streamsService = "DynamoDBStreams"
)

func (l *changeLoad) fill(ctx context.Context) error {
	for table, stream := range map[string]string{
		recordedTable: `, "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"}`, unrecordedTable: "",
	} {
		if err := l.call(ctx, plainService, "CreateTable", `{"TableName": "`+table+`", "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}, {"AttributeName": "SK", "AttributeType": "N"}],
			"KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}]`+stream+`}`, nil); err != nil {
			return err
		}
		for i := range l.rows {
			if err := l.call(ctx, plainService, "PutItem", `{"TableName": "`+table+`", "Item": `+changeItem(i, 0)+`}`, nil); err != nil {
				return err
			}
		}
	}
	var described struct {
		Table struct{ LatestStreamArn string }
	}
	if err := l.call(ctx, plainService, "DescribeTable", `{"TableName": "`+recordedTable+`"}`, &described); err != nil {
		return err
	}
	stream := `{"StreamArn": "` + described.Table.LatestStreamArn + `"`
	var shards struct {
		StreamDescription struct {
			Shards []struct {
				ShardID string `json:"ShardId"`
			}
		}
	}
	if err := l.call(ctx, streamsService, "DescribeStream", stream+"}", &shards); err != nil {
		return err
	}
	if n := len(shards.StreamDescription.Shards); n != 1 {
		return fmt.Errorf("the stream has %d shards, want 1", n)
	}
	var iterator struct{ ShardIterator string }
	err := l.call(ctx, streamsService, "GetShardIterator", stream+`, "ShardId": "`+shards.StreamDescription.Shards[0].ShardID+`", "ShardIteratorType": "TRIM_HORIZON"}`, &iterator)
	l.iterator = iterator.ShardIterator
	return err
}

func changeKey(i int) string { return fmt.Sprintf(`"PK": {"S": "p"}, "SK": {"N": "%d"}`, i) }

// changeItem returns a version of an item.
func changeItem(i int, version uint64) string {
	return fmt.Sprintf(`{%s, "N": {"N": "%d"}, "V": {"S": "%0*d"}}`, changeKey(i), version, changeText, i)
}

func (l *changeLoad) getRecords(ctx context.Context, _ *rand.Rand) error {
	return l.call(ctx, streamsService, "GetRecords", `{"ShardIterator": "`+l.iterator+`"}`, &countOf{`"eventID"`, l.rows})
}

func (l *changeLoad) query(ctx context.Context, _ *rand.Rand) error {
	return l.call(ctx, plainService, "Query", `{"TableName": "`+recordedTable+`", "KeyConditionExpression": "PK = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}}`, &countOf{`"SK"`, l.rows})
}

func (l *changeLoad) get(ctx context.Context, rng *rand.Rand) error {
	return l.call(ctx, plainService, "GetItem", `{"TableName": "`+unrecordedTable+`", "Key": {`+changeKey(rng.IntN(l.rows))+`}}`, &countOf{`"SK"`, 1})
}

func (l *changeLoad) executeStatement(ctx context.Context, rng *rand.Rand) error {
	return l.call(ctx, plainService, "ExecuteStatement", `{"Statement": "SELECT * FROM `+unrecordedTable+` WHERE PK = ? AND SK = ?", "Parameters": [{"S": "p"}, {"N": "`+strconv.Itoa(rng.IntN(l.rows))+`"}]}`,
		&countOf{`"SK"`, 1})
}

// on returns the workload on one of the tables.
func (l *changeLoad) on(table string, call func(context.Context, string, *rand.Rand) error) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, rng *rand.Rand) error { return call(ctx, table, rng) }
}

func (l *changeLoad) put(ctx context.Context, table string, rng *rand.Rand) error {
	return l.call(ctx, plainService, "PutItem", `{"TableName": "`+table+`", "Item": `+changeItem(rng.IntN(l.rows), rng.Uint64())+`}`, nil)
}

func (l *changeLoad) update(ctx context.Context, table string, rng *rand.Rand) error {
	return l.call(ctx, plainService, "UpdateItem", `{"TableName": "`+table+`", "Key": {`+changeKey(rng.IntN(l.rows))+`},
		"UpdateExpression": "SET N = :n", "ExpressionAttributeValues": {":n": {"N": "`+strconv.FormatUint(rng.Uint64(), 10)+`"}}}`, nil)
}

func (l *changeLoad) transact(ctx context.Context, table string, rng *rand.Rand) error {
	writes := make([]string, 10)
	for i, item := range rng.Perm(l.rows)[:len(writes)] {
		writes[i] = `{"Put": {"TableName": "` + table + `", "Item": ` + changeItem(item, rng.Uint64()) + `}}`
	}
	return l.call(ctx, plainService, "TransactWriteItems", `{"TransactItems": [`+strings.Join(writes, ", ")+`]}`, nil)
}
