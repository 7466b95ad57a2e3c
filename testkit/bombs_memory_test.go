package testkit_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/testkit"
)

// TestMemory_HeapAfterLargeReads reads rows and items that are large together, with many
// concurrent clients over the network, through both servers. The heap of the reads is free
// afterwards, while the server and its connections live on. In the long tier rows, items and the
// limit are twice as large.
func TestMemory_HeapAfterLargeReads(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	race.OneAfterTheOther(t)
	scale := 1
	if long.Enabled() {
		scale = 2
	}
	memory.Alone(t, func(t *testing.T) { testHeapAfterLargeReads(t, scale) })
}

func testHeapAfterLargeReads(t *testing.T, scale int) {
	t.Helper()
	const (
		clients   = 8
		rows      = 2
		itemBytes = 390_000
	)
	rowBytes, items := scale*4*mib, scale*23
	most := uint64(scale) * 4 * mib // buffers of connections, and blocks of the store
	env := testkit.Start(t)
	if err := env.BigtableAdmin(t).CreateTableFromConf(t.Context(), &bigtable.TableConf{
		TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy()},
	}); err != nil {
		t.Fatal(err)
	}
	table := "projects/" + env.Project() + "/instances/" + env.Instance() + "/tables/t"
	conn, err := grpc.NewClient(env.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	data := btpb.NewBigtableClient(conn)
	httpClient := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(httpClient.CloseIdleConnections)
	call := func(operation, body string) (int64, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, env.DynamoDBURL(), strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", "application/x-amz-json-1.0")
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
		req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=a")
		req.Header.Set("X-Amz-Date", "20260101T000000Z")
		resp, err := httpClient.Do(req)
		if err != nil {
			return 0, err
		}
		defer func() { _ = resp.Body.Close() }()
		n, err := io.Copy(io.Discard, resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", operation, resp.Status)
		}
		return n, err
	}
	mustCall := func(operation, body string) {
		t.Helper()
		if _, err := call(operation, body); err != nil {
			t.Fatal(err)
		}
	}
	mustCall("CreateTable", `{"TableName": "items", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}, {"AttributeName": "s", "AttributeType": "N"}],
		"KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}]}`)

	// Stored data is outside the heap, except for the store's cache without C.
	for i := range rows {
		muts := bombCells(1, strings.Repeat("v", rowBytes))
		if _, err := data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: table, RowKey: fmt.Appendf(nil, "r%d", i), Mutations: muts}); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for i := range items {
		mustCall("PutItem", fmt.Sprintf(`{"TableName": "items", "Item": {"p": {"S": "p"}, "s": {"N": "%d"}, "v": {"S": "%s"}}}`, i, strings.Repeat("v", itemBytes)))
		if i < 40 { // 16 MB
			keys = append(keys, fmt.Sprintf(`{"p": {"S": "p"}, "s": {"N": "%d"}}`, i))
		}
	}
	batch := `{"RequestItems": {"items": {"Keys": [` + strings.Join(keys, ",") + `]}}}`

	readAll := func() error {
		read := 0
		stream, err := data.ReadRows(t.Context(), &btpb.ReadRowsRequest{TableName: table})
		for err == nil {
			var resp *btpb.ReadRowsResponse
			if resp, err = stream.Recv(); err == nil {
				for _, chunk := range resp.GetChunks() {
					read += len(chunk.GetValue())
				}
			}
		}
		if !errors.Is(err, io.EOF) || read != rows*rowBytes {
			return fmt.Errorf("%d bytes of rows are read: %w", read, err)
		}
		for operation, body := range map[string]string{
			"BatchGetItem": batch, "Scan": `{"TableName": "items"}`,
			"Query": `{"TableName": "items", "KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}}`,
		} {
			if n, err := call(operation, body); err != nil || n < mib {
				return fmt.Errorf("%s answers %d bytes: %w", operation, n, err)
			}
		}
		return nil
	}
	// Reads with small answers fill the cache.
	noValues := &btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}}
	if _, err := bombRead(t, data, table, noValues, nothing); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		mustCall("GetItem", `{"TableName": "items", "ProjectionExpression": "p", "Key": `+key+`}`)
	}
	before := memory.Live()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			if err := readAll(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	after := memory.Live()
	t.Logf("the heap has %.1f MiB before the reads and %.1f MiB after them", float64(before)/mib, float64(after)/mib)
	if after > before+most && !race.Enabled {
		t.Errorf("the heap has %d bytes after the reads and had %d before them, want %d more at most", after, before, most)
	}
	runtime.KeepAlive(env)
}
