package admin

import (
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	retention := func(s int64) *btapb.ChangeStreamConfig {
		return &btapb.ChangeStreamConfig{RetentionPeriod: &durationpb.Duration{Seconds: s}}
	}
	for _, tc := range []struct {
		path      string
		dst, src  *btapb.Table
		want      *btapb.Table
		isNoField bool
	}{
		{path: "deletion_protection", dst: &btapb.Table{Name: "t"}, src: &btapb.Table{Name: "u", DeletionProtection: true}, want: &btapb.Table{Name: "t", DeletionProtection: true}},
		{path: "deletion_protection", dst: &btapb.Table{DeletionProtection: true}, src: &btapb.Table{}, want: &btapb.Table{}},
		{path: "change_stream_config", dst: &btapb.Table{}, src: &btapb.Table{ChangeStreamConfig: retention(1)}, want: &btapb.Table{ChangeStreamConfig: retention(1)}},
		{path: "change_stream_config", dst: &btapb.Table{ChangeStreamConfig: retention(1)}, src: &btapb.Table{}, want: &btapb.Table{}},
		// A field of a missing message creates the message.
		{path: "change_stream_config.retention_period", dst: &btapb.Table{}, src: &btapb.Table{ChangeStreamConfig: retention(1)}, want: &btapb.Table{ChangeStreamConfig: retention(1)}},
		{path: "change_stream_config.retention_period.seconds", dst: &btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: &durationpb.Duration{Seconds: 2, Nanos: 3}}}, src: &btapb.Table{ChangeStreamConfig: retention(1)}, want: &btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: &durationpb.Duration{Seconds: 1, Nanos: 3}}}},
		{path: "change_stream_config.retention_period", dst: &btapb.Table{ChangeStreamConfig: retention(1)}, src: &btapb.Table{}, want: &btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{}}},
		// Clearing a field of a missing message does not create it.
		{path: "change_stream_config.retention_period", dst: &btapb.Table{}, src: &btapb.Table{}, want: &btapb.Table{}},
		// A field of a oneof.
		{path: "automated_backup_policy.disabled", dst: &btapb.Table{}, src: &btapb.Table{AutomatedBackupConfig: &btapb.Table_AutomatedBackupPolicy_{AutomatedBackupPolicy: &btapb.Table_AutomatedBackupPolicy{Disabled: true, Locations: []string{"l"}}}}, want: &btapb.Table{AutomatedBackupConfig: &btapb.Table_AutomatedBackupPolicy_{AutomatedBackupPolicy: &btapb.Table_AutomatedBackupPolicy{Disabled: true}}}},
		{path: "", isNoField: true},
		{path: "none", isNoField: true},
		{path: ".name", isNoField: true},
		{path: "name.", isNoField: true},
		{path: "name.x", isNoField: true},
		{path: "deletionProtection", isNoField: true},
		{path: "column_families.f", isNoField: true}, // of a map
		{path: "automated_backup_policy.locations.x", isNoField: true},
		{path: "change_stream_config.none", isNoField: true},
		{path: "change_stream_config.retention_period.none", isNoField: true},
	} {
		if tc.isNoField {
			tc.dst, tc.src, tc.want = &btapb.Table{Name: "t"}, &btapb.Table{Name: "u"}, &btapb.Table{Name: "t"}
		}
		before := proto.CloneOf(tc.src)
		if ok := copyField(tc.dst.ProtoReflect(), tc.src.ProtoReflect(), tc.path); ok == tc.isNoField || !proto.Equal(tc.dst, tc.want) {
			t.Errorf("%q: %v, %v; want %v", tc.path, ok, tc.dst, tc.want)
		}
		if !proto.Equal(tc.src, before) {
			t.Errorf("%q: the source became %v", tc.path, tc.src)
		}
	}
}

func TestUnder(t *testing.T) {
	t.Parallel()
	paths := []string{"a.b", "c", "ab"}
	for field, want := range map[string]bool{"a": true, "a.b": true, "a.b.c": false, "b": false, "c": true, "ab": true, "": false} {
		if got := fieldsUnder(paths, field); got != want {
			t.Errorf("%q: %v", field, got)
		}
	}
	if fieldsUnder(nil, "a") {
		t.Error("there is a field under no path")
	}
}
