package facade

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

const startBulk = `{"TableName": "orders", "InputS3Configuration": {"S3Bucket": "bucket", "InputFormat": "DYNAMODB_JSON"},
	"OutputS3Configuration": {"S3Bucket": "bucket", "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"]}}`

// bulkObjects are the objects of a bulk operation. One of their eight records is malformed, and
// one has a condition that does not hold.
var bulkObjects = map[string]string{
	"bucket/1.json": `{"Item": {"id": {"S": "a"}, "v": {"N": "1"}}}
{"Item": {"id": {"S": "b"}, "v": {"N": "2"}}, "ConditionExpression": "attribute_not_exists(id)"}
{"Item": {"id": {"S": "a"}, "v": {"N": "3"}}, "ConditionExpression": "v = :v", "ExpressionAttributeValues": {":v": {"N": "1"}}}
`,
	"bucket/2.json": `{"Item": {"id": {"S": "b"}, "v": {"N": "4"}}, "ConditionExpression": "attribute_not_exists(id)"}
{"Item": {"v": {"N": "4"}}}
`,
	"bucket/3.json": `{"Item": {"id": {"S": "c"}, "v": {"N": "5"}}}
{"Item": {"id": {"S": "c"}, "v": {"N": "6"}}}
{"Item": {"id": {"S": "d"}, "v": {"N": "7"}}, "ConditionExpression": "attribute_not_exists(id)"}
`,
}

// readReports returns the lines of all reports in a bucket, by file name.
func readReports(t *testing.T, s *Server) map[string][]string {
	t.Helper()
	reports := map[string][]string{}
	err := fs.WalkDir(s.opts.Buckets.FS(), "bucket/AWSDynamoDB", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(s.opts.Buckets.FS(), name)
		lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
		reports[d.Name()] = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

// The reports list the rejected records, and are not part of the input.
func TestBulk_Reports(t *testing.T) {
	t.Parallel()
	buckets := openBuckets(t, t.TempDir())
	s := newTestServer(t, func(o *Options) { o.Buckets = buckets })
	must(t, s, "CreateTable", createOrders)
	for key, text := range bulkObjects {
		writeObject(t, buckets, key, text)
	}
	arn := between(must(t, s, "StartBulkPutItems", startBulk), `"BulkOperationArn":"`, `"`)
	waitForJobs(t, s)
	at := func(object string, index int) string {
		return fmt.Sprintf(`{"itemS3Pointer":{"bucket":"bucket","key":"%s","itemIndex":%d},"bulkOperationArn":"%s",`, object, index, arn)
	}
	folder := "AWSDynamoDB/" + arn[strings.LastIndexByte(arn, '/')+1:] + "/"
	want := map[string][]string{
		"errors.json": {at("2.json", 1) + `"errorMessages":["One or more parameter values were invalid: Missing the key id in the item"],"Item":{"v":{"N":"4"}}}`},
		"condition-check-failures.json": {
			at("2.json", 0) + `"Item":{"id":{"S":"b"},"v":{"N":"4"}},"ExistingItem":{"id":{"S":"b"},"v":{"N":"2"}}}`,
		},
		"manifest.json": {`{"bulkOperationArn":"` + arn + `","tableName":"orders","processedItemCount":8,"failedItemCount":1,"outputFiles":["` +
			folder + `condition-check-failures.json","` + folder + `errors.json"]}`},
	}
	if diff := gocmp.Diff(want, readReports(t, s)); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	// Another operation over the same bucket does not read these reports.
	arn = between(must(t, s, "StartBulkPutItems", startBulk), `"BulkOperationArn":"`, `"`)
	waitForJobs(t, s)
	if got := must(t, s, "DescribeBulkOperation", `{"BulkOperationArn": "`+arn+`"}`); !strings.Contains(got, `"ProcessedItemCount":8,`) {
		t.Errorf("the second operation is %s", got)
	}
	if got := orders(t, s, "orders"); !gocmp.Equal(got, map[string]string{"a": "3", "b": "2", "c": "6", "d": "7"}) {
		t.Errorf("the table holds %v", got)
	}
}

// A bulk operation, killed at any call, processes each record once. A record that was put after
// the last checkpoint counts as put, even if its condition no longer holds.
func TestKilled_Bulk(t *testing.T) {
	t.Parallel()
	crashEverywhereIn(t, long.Enabled(), crashed{
		kind: "bulk-operation",
		prepare: func(t *testing.T, s *Server) string {
			t.Helper()
			must(t, s, "CreateTable", createOrders)
			for key, text := range bulkObjects {
				writeObject(t, s.opts.Buckets, key, text)
			}
			return ""
		},
		do: func(t *testing.T, s *Server, _ string) (string, error) {
			t.Helper()
			answer, err := s.Call(t.Context(), "StartBulkPutItems", []byte(startBulk))
			if err != nil {
				return "", err
			}
			return between(string(answer), `"BulkOperationArn":"`, `"`), nil
		},
		check: func(t *testing.T, s *Server, acknowledged string) {
			t.Helper()
			if acknowledged == "" && len(jobsOf(t, s, "bulk-operation")) == 0 {
				return
			}
			list := must(t, s, "ListBulkOperations", `{}`)
			arn := between(list, `"BulkOperationArn":"`, `"`)
			if acknowledged != "" && arn != acknowledged {
				t.Errorf("there are the operations %s, want %s", list, acknowledged)
			}
			got := must(t, s, "DescribeBulkOperation", `{"BulkOperationArn": "`+arn+`"}`)
			for _, want := range []string{`"BulkOperationStatus":"COMPLETED_WITH_ERRORS"`, `"ProcessedItemCount":8`, `"FailedItemCount":1`} {
				if !strings.Contains(got, want) {
					t.Errorf("the operation is %s, want %s", got, want)
				}
			}
			if got := orders(t, s, "orders"); !gocmp.Equal(got, map[string]string{"a": "3", "b": "2", "c": "6", "d": "7"}) {
				t.Errorf("the table holds %v", got)
			}
			reports := readReports(t, s)
			if len(reports["errors.json"]) != 1 || len(reports["condition-check-failures.json"]) != 1 || len(reports["manifest.json"]) != 1 {
				t.Errorf("the reports are %v", reports)
			}
		},
	})
}

// Without buckets, the error of each bulk operation names that operation.
func TestBulk_NoBuckets(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	for _, operation := range []string{"StartBulkPutItems", "DescribeBulkOperation", "ListBulkOperations", "CancelBulkOperation"} {
		if _, err := s.Call(t.Context(), operation, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), operation) {
			t.Errorf("%s: %v", operation, err)
		}
	}
}

// A cancelled operation ends before it has read all objects, and keeps the items that it put.
func TestBulk_Cancelled(t *testing.T) {
	t.Parallel()
	buckets := openBuckets(t, t.TempDir())
	s := newTestServer(t, func(o *Options) { o.Buckets = buckets })
	must(t, s, "CreateTable", createOrders)
	// More jobs than run at once: the last one is pending, and is cancelled before it begins.
	for i := range 40 {
		writeObject(t, buckets, fmt.Sprintf("bucket/%02d.json", i), fmt.Sprintf(`{"Item": {"id": {"S": "id%d"}, "v": {"N": "1"}}}`, i))
	}
	arn := ""
	for range 12 {
		arn = between(must(t, s, "StartBulkPutItems", startBulk), `"BulkOperationArn":"`, `"`)
	}
	answer, err := s.Call(t.Context(), "CancelBulkOperation", []byte(`{"BulkOperationArn": "`+arn+`"}`))
	waitForJobs(t, s)
	got := must(t, s, "DescribeBulkOperation", `{"BulkOperationArn": "`+arn+`"}`)
	switch {
	case err != nil: // the operation ended first
		if !strings.Contains(got, `"BulkOperationStatus":"COMPLETED`) {
			t.Errorf("%v, and the operation is %s", err, got)
		}
	case !strings.Contains(string(answer), `"BulkOperationStatus":"CANCELLING"`) || !strings.Contains(got, `"BulkOperationStatus":"CANCELLED"`):
		t.Errorf("%s; the operation is %s", answer, got)
	}
}

// A bulk operation waits for a transaction that holds one of its items, and can be cancelled
// meanwhile. It does not count records that it has not put.
func TestBulk_HeldItems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		records, status string
		processed       int
		want            map[string]string
	}{
		"put": {
			`{"Item": {"id": {"S": "free"}, "v": {"N": "3"}}}
{"Item": {"id": {"S": "a"}, "v": {"N": "3"}}}`, "COMPLETED", 2, map[string]string{"a": "3", "b": "2", "free": "3"},
		},
		"put if": {`{"Item": {"id": {"S": "b"}, "v": {"N": "3"}}, "ConditionExpression": "attribute_exists(id)"}`, "COMPLETED", 1, map[string]string{"a": "2", "b": "3"}},
		"cancelled put": {
			`{"Item": {"id": {"S": "free"}, "v": {"N": "3"}}}
{"Item": {"id": {"S": "a"}, "v": {"N": "3"}}}
{"Item": {"id": {"S": "b"}, "v": {"N": "3"}}, "ConditionExpression": "attribute_exists(id)"}`, "CANCELLED", 1, map[string]string{"a": "2", "b": "2", "free": "3"},
		},
		"cancelled put if": {`{"Item": {"id": {"S": "b"}, "v": {"N": "3"}}, "ConditionExpression": "attribute_exists(id)"}`, "CANCELLED", 0, map[string]string{"a": "2", "b": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				wall, buckets := clock.New(), openBuckets(t, t.TempDir())
				conn := &intercept.Conn{}
				s := newTestServer(t, func(o *Options) { conn.ClientConnInterface = o.Conn; o.Conn, o.Buckets, o.wall = conn, buckets, wall })
				must(t, s, "CreateTable", createOrders)
				writeObject(t, buckets, "bucket/1.json", c.records)
				arn := ""
				meanwhile(conn, func() {
					arn = between(must(t, s, "StartBulkPutItems", startBulk), `"BulkOperationArn":"`, `"`)
					if err := wall.Wait(t.Context(), time.Minute); err != nil {
						t.Error(err)
					}
					if c.status == "CANCELLED" {
						must(t, s, "CancelBulkOperation", `{"BulkOperationArn": "`+arn+`"}`)
						waitForJobs(t, s)
					}
				})
				must(t, s, "TransactWriteItems", `{"TransactItems": [{"Put": {"TableName": "orders", "Item": {"id": {"S": "a"}, "v": {"N": "2"}}}},
					{"Put": {"TableName": "orders", "Item": {"id": {"S": "b"}, "v": {"N": "2"}}}}]}`)
				waitForJobs(t, s)
				got := must(t, s, "DescribeBulkOperation", `{"BulkOperationArn": "`+arn+`"}`)
				for _, want := range []string{`"BulkOperationStatus":"` + c.status + `"`, fmt.Sprintf(`"ProcessedItemCount":%d,`, c.processed), `"FailedItemCount":0,`} {
					if !strings.Contains(got, want) {
						t.Errorf("the operation is %s, want %s", got, want)
					}
				}
				if diff := gocmp.Diff(c.want, orders(t, s, "orders")); diff != "" {
					t.Errorf("the table (-want +got):\n%s", diff)
				}
				if lines := readReports(t, s)["errors.json"]; len(lines) > 0 {
					t.Errorf("refused: %v", lines)
				}
			})
		})
	}
}

// Of the records of an object, only those fail whose items fit the mapping, but would be stored
// in cells of another item.
func TestBulk_OutsideMapping(t *testing.T) {
	t.Parallel()
	buckets := openBuckets(t, t.TempDir())
	s := newTestServer(t, func(o *Options) {
		o.Buckets, o.Mappings, o.wall = buckets, []*mapping.Mapping{mappingOf(t, videoYAML)}, clock.New()
	})
	const views, collides = `"PK": {"S": "0123"}, "SK": {"S": "VideoStatsViews"}, "Count": {"N": "156"}`, `"PK": {"S": "0123"}, "SK": {"S": "VideoStats"}, "ViewCount": {"N": "45"}`
	writeObject(t, buckets, "bucket/1.json", `{"Item": {`+views+`}}
{"Item": {`+collides+`}}
{"Item": {"PK": {"S": "4567"}, "SK": {"S": "VideoStatsLikes"}, "Count": {"N": "1"}}}
{"Item": {`+collides+`}, "ConditionExpression": "attribute_not_exists(PK)"}
`)
	arn := between(must(t, s, "StartBulkPutItems", strings.Replace(startBulk, `"orders"`, `"Videos"`, 1)), `"BulkOperationArn":"`, `"`)
	waitForJobs(t, s)
	got := must(t, s, "DescribeBulkOperation", `{"BulkOperationArn": "`+arn+`"}`)
	for _, want := range []string{`"BulkOperationStatus":"COMPLETED_WITH_ERRORS"`, `"ProcessedItemCount":4,`, `"FailedItemCount":2,`} {
		if !strings.Contains(got, want) {
			t.Errorf("the operation is %s, want %s", got, want)
		}
	}
	lines := readReports(t, s)["errors.json"]
	if len(lines) != 2 {
		t.Errorf("%d lines are reported, want 2", len(lines))
	}
	for i, line := range lines {
		if want := fmt.Sprintf(`"itemIndex":%d}`, 1+2*i); !strings.Contains(line, want) || !strings.Contains(line, store.ErrOutsideMapping.Error()) {
			t.Errorf("line %d is %s, want %s", i, line, want)
		}
	}
	if got := must(t, s, "Scan", `{"TableName": "Videos"}`); !strings.Contains(got, `"Count":2,`) || strings.Contains(got, "ViewCount") {
		t.Errorf("the table holds %s", got)
	}
}

// savesKey reports whether a write saves that a bulk operation is at the object key.
func savesKey(write *btpb.CheckAndMutateRowRequest, key string) bool {
	return slices.ContainsFunc(slices.Concat(write.GetTrueMutations(), write.GetFalseMutations()), func(m *btpb.Mutation) bool {
		return strings.Contains(string(m.GetSetCell().GetValue()), `"Key":"`+key+`"`)
	})
}

// A bulk operation fails once its table was deleted, even if it puts no more items.
func TestBulk_DeletedTable(t *testing.T) {
	t.Parallel()
	now, buckets := clock.NewFrozen(testTime), openBuckets(t, t.TempDir())
	conn := &faultyConn{ClientConnInterface: peer.Bigtable(t, now)}
	s := newTestServer(t, func(o *Options) { o.Conn, o.Now, o.Buckets = conn, now.Now, buckets })
	other := newTestServer(t, func(o *Options) { o.Conn, o.Now = conn.ClientConnInterface, now.Now })
	must(t, s, "CreateTable", createOrders)
	for _, key := range []string{"bucket/1.json", "bucket/2.json"} {
		writeObject(t, buckets, key, `{"Item": {"v": {"N": "1"}}}`)
	}
	deleted := false
	conn.set(false, func(req any) bool {
		save, ok := req.(*btpb.CheckAndMutateRowRequest)
		if !ok || deleted || !savesKey(save, "1.json") {
			return false
		}
		deleted = true
		if _, err := other.Call(t.Context(), "DeleteTable", []byte(`{"TableName": "orders"}`)); err != nil {
			t.Error(err)
		}
		return false
	})
	arn := between(must(t, s, "StartBulkPutItems", startBulk), `"BulkOperationArn":"`, `"`)
	waitForJobs(t, s)
	got := must(t, s, "DescribeBulkOperation", `{"BulkOperationArn": "`+arn+`"}`)
	for _, want := range []string{`"BulkOperationStatus":"FAILED"`, `"FailureCode":"` + awserr.FailureTableNotFound + `"`, `"ProcessedItemCount":1,`} {
		if !strings.Contains(got, want) {
			t.Errorf("the operation is %s, want %s", got, want)
		}
	}
}
