package admin

import (
	"fmt"
	"slices"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

var backupStart = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// in is a time after the start.
func in(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(backupStart.Add(d)) }

const backupDay = 24 * time.Hour

// The state of a backup follows from its times, to the microsecond.
func TestAt(t *testing.T) {
	t.Parallel()
	stored := &btapb.Backup{
		Name: "b", StartTime: in(0), EndTime: in(time.Hour), SizeBytes: 5, BackupType: btapb.Backup_HOT, HotToStandardTime: in(backupDay), ExpireTime: in(2 * backupDay),
	}
	before := proto.CloneOf(stored)
	for _, tc := range []struct {
		at    time.Duration
		state btapb.Backup_State
		end   time.Duration
		bytes int64
		typ   btapb.Backup_BackupType
	}{
		{0, btapb.Backup_CREATING, 0, 0, btapb.Backup_HOT},
		{time.Hour - 1, btapb.Backup_CREATING, 0, 0, btapb.Backup_HOT},
		{time.Hour, btapb.Backup_READY, time.Hour, 0, btapb.Backup_HOT},
		{time.Hour + time.Minute - 1, btapb.Backup_READY, time.Hour, 0, btapb.Backup_HOT},
		{time.Hour + time.Minute, btapb.Backup_READY, time.Hour, 5, btapb.Backup_HOT},
		{backupDay - 1, btapb.Backup_READY, time.Hour, 5, btapb.Backup_HOT},
		{backupDay, btapb.Backup_READY, time.Hour, 5, btapb.Backup_STANDARD},
	} {
		b := BackupAt(stored, backupStart.Add(tc.at))
		if b.GetState() != tc.state || !proto.Equal(b.GetEndTime(), in(tc.end)) || b.GetSizeBytes() != tc.bytes || b.GetBackupType() != tc.typ ||
			(b.GetHotToStandardTime() != nil) != (tc.typ == btapb.Backup_HOT) {
			t.Errorf("after %v: %v", tc.at, b)
		}
	}
	if !proto.Equal(stored, before) {
		t.Errorf("what is stored became %v", stored)
	}
}

// A backup expires at its expire_time, or with the last copy that is running
// then.
func TestGoneAt(t *testing.T) {
	t.Parallel()
	b := &btapb.Backup{Name: "b", ExpireTime: in(backupDay)}
	copied := func(from string, end time.Duration) *btapb.Backup {
		return &btapb.Backup{Name: fmt.Sprint(from, end), SourceBackup: from, ExpireTime: in(30 * backupDay), EndTime: in(end)}
	}
	for _, tc := range []struct {
		copies []*btapb.Backup
		want   time.Duration
	}{
		{nil, backupDay},
		{[]*btapb.Backup{copied("b", backupDay-1)}, backupDay},
		{[]*btapb.Backup{copied("b", backupDay+time.Hour), copied("b", backupDay+2*time.Hour), copied("b", 0)}, backupDay + 2*time.Hour},
		{[]*btapb.Backup{copied("another", 2*backupDay)}, backupDay},
	} {
		if got := backupGoneAt(append(tc.copies, b))(b); !got.Equal(backupStart.Add(tc.want)) {
			t.Errorf("copies %v: gone at %v, want %v", tc.copies, got, backupStart.Add(tc.want))
		}
	}
}

func TestCheckExpiry(t *testing.T) {
	t.Parallel()
	for age, ok := range map[time.Duration]bool{
		6 * time.Hour: true, 6*time.Hour - grace: true, 6*time.Hour - grace - 1: false, 0: false, -backupDay: false,
		90 * backupDay: true, 90*backupDay + 1: false,
	} {
		if err := checkBackupExpiry(&btapb.Backup{StartTime: in(0), ExpireTime: in(age)}, maxBackupAge(&btapb.Instance{})); (err == nil) != ok {
			t.Errorf("%v: %v", age, err)
		}
	}
	plus := maxBackupAge(&btapb.Instance{Edition: btapb.Instance_ENTERPRISE_PLUS})
	for age, ok := range map[time.Duration]bool{365 * backupDay: true, 365*backupDay + 1: false} {
		if err := checkBackupExpiry(&btapb.Backup{StartTime: in(0), ExpireTime: in(age)}, plus); (err == nil) != ok {
			t.Errorf("of ENTERPRISE_PLUS, %v: %v", age, err)
		}
	}
	for name, at := range map[string]*timestamppb.Timestamp{"none": nil, "bad": {Nanos: -1}, "far": {Seconds: 1 << 60}} {
		if err := checkBackupExpiry(&btapb.Backup{StartTime: in(0), ExpireTime: at}, plus); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestHot(t *testing.T) {
	t.Parallel()
	ssd, hdd := &btapb.Cluster{DefaultStorageType: btapb.StorageType_SSD}, &btapb.Cluster{DefaultStorageType: btapb.StorageType_HDD}
	for _, tc := range []struct {
		typ  btapb.Backup_BackupType
		c    *btapb.Cluster
		want btapb.Backup_BackupType
		ok   bool
	}{
		{btapb.Backup_BACKUP_TYPE_UNSPECIFIED, hdd, btapb.Backup_STANDARD, true},
		{btapb.Backup_STANDARD, hdd, btapb.Backup_STANDARD, true},
		{btapb.Backup_HOT, ssd, btapb.Backup_HOT, true},
		{btapb.Backup_HOT, hdd, btapb.Backup_HOT, false},
		{99, ssd, 99, false},
	} {
		b := &btapb.Backup{BackupType: tc.typ}
		if err := settleBackupType(b, tc.c); (err == nil) != tc.ok || b.GetBackupType() != tc.want {
			t.Errorf("%v: %v, %v", tc, b, err)
		}
	}
	for _, tc := range []struct {
		typ btapb.Backup_BackupType
		at  *timestamppb.Timestamp
		ok  bool
	}{
		{btapb.Backup_HOT, nil, true},
		{btapb.Backup_STANDARD, nil, true},
		{btapb.Backup_STANDARD, in(backupDay), false},
		{btapb.Backup_HOT, in(backupDay), true},
		{btapb.Backup_HOT, in(backupDay - grace), true},
		{btapb.Backup_HOT, in(backupDay - grace - 1), false},
		{btapb.Backup_HOT, in(1000 * backupDay), true},
		{btapb.Backup_HOT, &timestamppb.Timestamp{Nanos: -1}, false},
	} {
		if err := checkHotTime(&btapb.Backup{StartTime: in(0), BackupType: tc.typ, HotToStandardTime: tc.at}); (err == nil) != tc.ok {
			t.Errorf("%v: %v", tc, err)
		}
	}
}

func TestMicros(t *testing.T) {
	t.Parallel()
	if micros(nil) != nil {
		t.Error("there is a time where there was none")
	}
	for _, s := range []int64{-1, 0, 5} {
		if got, want := micros(&timestamppb.Timestamp{Seconds: s, Nanos: 123_456_789}), (&timestamppb.Timestamp{Seconds: s, Nanos: 123_456_000}); !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// Pages contain each backup once, even if others are created or deleted in
// between, and a token is valid only for its request.
func TestList_Pages(t *testing.T) {
	t.Parallel()
	var all []*btapb.Backup
	for i := range 10 {
		all = append(all, &btapb.Backup{
			Name: fmt.Sprint("b", i), SourceTable: fmt.Sprint("t", i%2), StartTime: in(time.Duration(i/2) * time.Hour), EndTime: in(backupDay),
			ExpireTime: in(2 * backupDay), SizeBytes: int64(i % 3), State: btapb.Backup_READY,
		})
	}
	for _, tc := range []struct {
		filter, order string
		want          []string
	}{
		{"", "", []string{"b8", "b9", "b6", "b7", "b4", "b5", "b2", "b3", "b0", "b1"}},
		{"", "name", []string{"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9"}},
		{"source_table:t1", "size_bytes desc, name", []string{"b5", "b1", "b7", "b3", "b9"}},
		{"size_bytes = 0", "end_time, expire_time, state, start_time desc", []string{"b9", "b6", "b3", "b0"}},
		{"state:none", "", nil},
	} {
		for _, size := range []int32{0, 1, 3, 100} {
			var got []string
			req := &btapb.ListBackupsRequest{Parent: "p", Filter: tc.filter, OrderBy: tc.order, PageSize: size}
			rest := slices.Clone(all)
			for {
				resp, field, err := listBackups(rest, req, 4)
				if err != nil {
					t.Fatalf("%+v: %s: %v", tc, field, err)
				}
				if most := 4; len(resp.GetBackups()) > most || size > 0 && len(resp.GetBackups()) > int(size) {
					t.Errorf("a page of %d", len(resp.GetBackups()))
				}
				for _, b := range resp.GetBackups() {
					got = append(got, b.GetName())
				}
				if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
					break
				}
				// Delete the listed backups.
				rest = slices.DeleteFunc(rest, func(b *btapb.Backup) bool { return slices.Contains(got, b.GetName()) })
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("filter %q, order %q, pages of %d: %v, want %v", tc.filter, tc.order, size, got, tc.want)
			}
		}
	}
	first, _, err := listBackups(all, &btapb.ListBackupsRequest{Parent: "p", PageSize: 1}, 4)
	if err != nil {
		t.Fatal(err)
	}
	token := first.GetNextPageToken()
	for want, req := range map[string]*btapb.ListBackupsRequest{
		"page_token":  {Parent: "q", PageToken: token},
		"page_token ": {Parent: "p", Filter: "name:b", PageToken: token},
		"page_token:": {Parent: "p", OrderBy: "name", PageToken: token},
		"page_token!": {Parent: "p", PageToken: token[:5]},
		"filter":      {Parent: "p", Filter: "("},
		"order_by":    {Parent: "p", OrderBy: "backup_type"},
	} {
		if _, field, err := listBackups(all, req, 4); err == nil || field != want[:len(field)] || field == "" {
			t.Errorf("%v: %q, %v", req, field, err)
		}
	}
}

func TestInfoOf(t *testing.T) {
	t.Parallel()
	b := &btapb.Backup{Name: "b", SourceTable: "t", SourceBackup: "s", StartTime: in(0), EndTime: in(backupDay), SizeBytes: 5}
	want := &btapb.BackupInfo{Backup: "b", SourceTable: "t", SourceBackup: "s", StartTime: in(0), EndTime: in(backupDay)}
	if got := backupInfoOf(b); !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if p := doneProgress(in(0), in(backupDay)); p.GetProgressPercent() != 100 || !proto.Equal(p.GetStartTime(), in(0)) || !proto.Equal(p.GetEndTime(), in(backupDay)) {
		t.Errorf("%v", p)
	}
}
