package admin

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// FuzzList lists with any filter, order and token. Errors name the bad field.
// Pages add up to the unpaged list. A forged token with a valid checksum is
// rejected, or begins a page in order.
func FuzzList(f *testing.F) {
	f.Add("", "", []byte(nil), int32(0))
	f.Add(`source_table:projects/p/instances/i/tables/t AND size_bytes > 1`, "size_bytes desc, name", []byte{0x0a, 1, 'b'}, int32(1))
	f.Add(`NOT (name:"b1" OR state=READY) expire_time<"2026-01-01T00:00:00Z"`, " start_time ,  state desc", []byte{0xff}, int32(2))
	start := time.Unix(1_700_000_000, 0)
	var all []*btapb.Backup
	for i := range 5 {
		at := timestamppb.New(start.Add(time.Duration(i/2) * time.Hour))
		all = append(all, &btapb.Backup{
			Name: fmt.Sprintf("projects/p/instances/i/clusters/c/backups/b%d", i), SourceTable: "projects/p/instances/i/tables/t",
			StartTime: at, EndTime: at, ExpireTime: timestamppb.New(start.Add(100 * time.Hour)), SizeBytes: int64(i % 3), State: btapb.Backup_READY,
		})
	}
	f.Fuzz(func(t *testing.T, filter, order string, raw []byte, size int32) {
		list := func(size int32, token string) (*btapb.ListBackupsResponse, error) {
			resp, field, err := listBackups(all, &btapb.ListBackupsRequest{Parent: "c", Filter: filter, OrderBy: order, PageSize: size, PageToken: token}, 4)
			if (err == nil) != (field == "") {
				t.Fatalf("field %q and error %v", field, err)
			}
			return resp, err
		}
		_, _ = list(size, string(raw))
		var names []string
		for token, n := "", 0; ; n++ {
			resp, err := list(1, token)
			if err != nil {
				if n > 0 {
					t.Fatalf("page %d: %v", n, err)
				}
				return
			}
			for _, b := range resp.GetBackups() {
				names = append(names, b.GetName())
			}
			if token = resp.GetNextPageToken(); token == "" {
				break
			}
			forge(t, list, token, raw)
		}
		first, err := list(size, "")
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range first.GetBackups() {
			if b.GetName() != names[i] {
				t.Fatalf("backup %d is %s at once, %s by pages", i, b.GetName(), names[i])
			}
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(names))); len(distinct) != len(names) {
			t.Fatalf("pages repeat: %q", names)
		}
	})
}

// forge lists by a token with forged content and a valid checksum.
func forge(t *testing.T, list func(int32, string) (*btapb.ListBackupsResponse, error), token string, content []byte) {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = list(0, base64.RawURLEncoding.EncodeToString(append(b[:listTokenSum:listTokenSum], content...)))
}
