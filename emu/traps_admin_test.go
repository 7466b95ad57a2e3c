package emu

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tabletop-emu/tabletop/engine"
)

func createFamily(id string, f *btapb.ColumnFamily) *btapb.ModifyColumnFamiliesRequest_Modification {
	return &btapb.ModifyColumnFamiliesRequest_Modification{Id: id, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: f}}
}

func dropFamily(id string) *btapb.ModifyColumnFamiliesRequest_Modification {
	return &btapb.ModifyColumnFamiliesRequest_Modification{Id: id, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}}
}

func updateFamily(id string, f *btapb.ColumnFamily, mask ...string) *btapb.ModifyColumnFamiliesRequest_Modification {
	m := &btapb.ModifyColumnFamiliesRequest_Modification{Id: id, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Update{Update: f}}
	if mask != nil {
		m.UpdateMask = &fieldmaskpb.FieldMask{Paths: mask}
	}
	return m
}

func maxVersions(n int32) *btapb.GcRule {
	return &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: n}}
}

func maxAge(d time.Duration) *btapb.GcRule {
	return &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(d)}}
}

func union(r ...*btapb.GcRule) *btapb.GcRule {
	return &btapb.GcRule{Rule: &btapb.GcRule_Union_{Union: &btapb.GcRule_Union{Rules: r}}}
}

func intersection(r ...*btapb.GcRule) *btapb.GcRule {
	return &btapb.GcRule{Rule: &btapb.GcRule_Intersection_{Intersection: &btapb.GcRule_Intersection{Rules: r}}}
}

func (e *env) families() string {
	e.t.Helper()
	got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable})
	if err != nil {
		e.t.Fatal(err)
	}
	var names []string
	for n := range got.GetColumnFamilies() {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestTrap53_ModifyColumnFamiliesIsAtomic(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	modify := func(mods ...*btapb.ModifyColumnFamiliesRequest_Modification) error {
		_, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{Name: testTable, Modifications: mods})
		return err
	}
	plain := &btapb.ColumnFamily{}
	wantCode(t, modify(createFamily("g", plain), dropFamily("nope")), codes.NotFound)
	wantCode(t, modify(createFamily("g", plain), updateFamily("nope", plain)), codes.NotFound)
	wantCode(t, modify(createFamily("g", plain), createFamily("f", plain)), codes.AlreadyExists)
	wantCode(t, modify(createFamily("g", plain), createFamily("a:b", plain)), codes.InvalidArgument)
	wantCode(t, modify(createFamily("g", plain), createFamily(strings.Repeat("f", 65), plain)), codes.InvalidArgument)
	wantCode(t, modify(createFamily("g", plain), &btapb.ModifyColumnFamiliesRequest_Modification{Id: "h"}), codes.InvalidArgument)
	wantCode(t, modify(), codes.InvalidArgument)
	if got := e.families(); got != "f" {
		t.Errorf("families: %s", got)
	}
	// Each step sees the previous ones.
	if err := modify(createFamily("g", plain), updateFamily("g", &btapb.ColumnFamily{GcRule: maxVersions(3)}), dropFamily("f"), createFamily("f", plain)); err != nil {
		t.Fatal(err)
	}
	e.mustMutate("r", set("f", "", 0, "1"), set("g", "", 0, "2"))
	e.wantCells(nil, "r g:@0=2", "r f:@0=1")
}

func TestTrap54_UpdateTouchesGCRuleOnly(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 0, "1"))
	rule := func() *btapb.GcRule {
		got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetColumnFamilies()["f"].GetGcRule()
	}
	e.modifyFamilies("t", updateFamily("f", &btapb.ColumnFamily{GcRule: maxVersions(2)}))
	if !proto.Equal(rule(), maxVersions(2)) {
		t.Errorf("got %v", rule())
	}
	e.modifyFamilies("t", updateFamily("f", &btapb.ColumnFamily{}, []string{}...))
	e.modifyFamilies("t", updateFamily("f", &btapb.ColumnFamily{GcRule: maxVersions(2)}, "gc_rule"))
	e.wantCells(nil, "r f:q@0=1")
}

func TestTrap55_DropRowRange(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	for _, k := range []string{"a", "ab", "abc", "b", "a\xff", "\xff", "\xff\xff", "\xff\xffx"} {
		e.mustMutate(k, set("f", "", 0, ""))
	}
	drop := func(req *btapb.DropRowRangeRequest) error {
		req.Name = testTable
		_, err := e.admin.DropRowRange(e.ctx(), req)
		return err
	}
	prefix := func(p string) *btapb.DropRowRangeRequest {
		return &btapb.DropRowRangeRequest{Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte(p)}}
	}
	all := func(v bool) *btapb.DropRowRangeRequest {
		return &btapb.DropRowRangeRequest{Target: &btapb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: v}}
	}
	keys := func() string { return fmt.Sprintf("%q", strings.Fields(keysOf(e.mustRead(&btpb.ReadRowsRequest{})))) }
	before := keys()
	wantCode(t, drop(prefix("")), codes.InvalidArgument)
	wantCode(t, drop(&btapb.DropRowRangeRequest{}), codes.InvalidArgument)
	wantCode(t, drop(all(false)), codes.OK)
	if got := keys(); got != before {
		t.Errorf("rows are gone: %s", got)
	}
	wantCode(t, drop(prefix("ab")), codes.OK)
	if got, want := keys(), `["a" "a\xff" "b" "\xff" "\xff\xff" "\xff\xffx"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wantCode(t, drop(prefix("\xff\xff")), codes.OK)
	if got, want := keys(), `["a" "a\xff" "b" "\xff"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wantCode(t, drop(all(true)), codes.OK)
	if got := keys(); got != "[]" {
		t.Errorf("got %s", got)
	}
	e.mustMutate("ab", set("f", "", 0, "new"))
	e.wantCells(nil, "ab f:@0=new")
}

func TestTrap56_DeletionProtection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: &btapb.Table{
		DeletionProtection: true, ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.mustMutate("r", set("f", "", 0, ""))
	check := func(e *env) {
		t.Helper()
		_, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
		wantCode(t, err, codes.FailedPrecondition)
		_, err = e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{
			Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{dropFamily("f")},
		})
		wantCode(t, err, codes.FailedPrecondition)
		got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable})
		if err != nil || !got.GetDeletionProtection() {
			t.Errorf("got %v, %v", got, err)
		}
	}
	check(e)
	e.mustMutate("r", deleteRow())
	// It survives a restart.
	if err := e.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.db.Close(); err != nil {
		t.Fatal(err)
	}
	check(newEnvWith(t, Options{}, engine.Options{Dir: dir}))
}

func TestTrap58_CreateTable(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	create := func(id string, table *btapb.Table) error {
		_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: id, Table: table})
		return err
	}
	family := func(name string, f *btapb.ColumnFamily) *btapb.Table {
		return &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{name: f}}
	}
	wantCode(t, create("t", nil), codes.OK)
	wantCode(t, create("t", nil), codes.AlreadyExists)
	wantCode(t, create(strings.Repeat("a", 50), nil), codes.OK)
	for _, id := range []string{"", "a b", "a/b", ".a", "-a", "é", strings.Repeat("a", 51)} {
		wantCode(t, create(id, nil), codes.InvalidArgument)
	}
	for name, table := range map[string]*btapb.Table{
		"family name":  family("a:b", &btapb.ColumnFamily{}),
		"empty family": family("", nil),
		"long family":  family(strings.Repeat("f", 65), nil),
		"gc rule":      family("f", &btapb.ColumnFamily{GcRule: maxVersions(0)}),
		"granularity":  {Granularity: 99},
	} {
		if err := create("u", table); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
	}
	for name, table := range map[string]*btapb.Table{
		"change_stream_config.retention_period":    {ChangeStreamConfig: &btapb.ChangeStreamConfig{}},
		"row_key_schema.encoding":                  {RowKeySchema: &btapb.Type_Struct{}},
		"tiered_storage_config.infrequent_access":  {TieredStorageConfig: &btapb.TieredStorageConfig{}},
		"automated_backup_policy.retention_period": withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{}),
	} {
		err := create("u", table)
		wantCode(t, err, codes.InvalidArgument)
		if !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: "instances/i", TableId: "u"})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "u", InitialSplits: []*btapb.CreateTableRequest_Split{{}}})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testInstance + "/tables/u"})
	wantCode(t, err, codes.NotFound)
}

func TestTrap59_ListTables(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, id := range []string{"c", "a", "b", "d"} {
		e.createTable(id)
	}
	// Instances with a common name prefix do not see each other's tables.
	for _, parent := range []string{testInstance + "2", "projects/p2/instances/i"} {
		if _, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: parent, TableId: "other"}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(req *btapb.ListTablesRequest) (ids string, pages int) {
		t.Helper()
		req.Parent = testInstance
		for {
			resp, err := e.admin.ListTables(e.ctx(), req)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, table := range resp.GetTables() {
				ids += strings.TrimPrefix(table.GetName(), testInstance+"/tables/")
			}
			if resp.GetNextPageToken() == "" {
				return ids, pages
			}
			req.PageToken = resp.GetNextPageToken()
		}
	}
	if ids, pages := list(&btapb.ListTablesRequest{}); ids != "abcd" || pages != 1 {
		t.Errorf("got %s in %d pages", ids, pages)
	}
	for size, want := range map[int32]int{1: 4, 2: 2, 3: 2, 4: 1, 5: 1} {
		if ids, pages := list(&btapb.ListTablesRequest{PageSize: size}); ids != "abcd" || pages != want {
			t.Errorf("page size %d: got %s in %d pages", size, ids, pages)
		}
	}
	_, err := e.admin.ListTables(e.ctx(), &btapb.ListTablesRequest{Parent: testInstance, PageSize: -1})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.admin.ListTables(e.ctx(), &btapb.ListTablesRequest{Parent: testInstance, PageToken: "!"})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.admin.ListTables(e.ctx(), &btapb.ListTablesRequest{})
	wantCode(t, err, codes.InvalidArgument)
}

func TestTrap60_Views(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.modifyFamilies("t", updateFamily("f", &btapb.ColumnFamily{GcRule: union(maxVersions(1), maxAge(time.Hour))}))
	get := func(v btapb.Table_View) *btapb.Table {
		t.Helper()
		got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: v})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	schema := &btapb.Table{
		Name: testTable, Granularity: btapb.Table_MILLIS,
		ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {GcRule: union(maxVersions(1), maxAge(time.Hour))}},
	}
	for _, v := range []btapb.Table_View{btapb.Table_VIEW_UNSPECIFIED, btapb.Table_SCHEMA_VIEW} {
		if got := get(v); !proto.Equal(got, schema) {
			t.Errorf("%v: got %v", v, got)
		}
	}
	if got := get(btapb.Table_NAME_ONLY); !proto.Equal(got, &btapb.Table{Name: testTable}) {
		t.Errorf("NAME_ONLY: got %v", got)
	}
	for _, v := range []btapb.Table_View{btapb.Table_REPLICATION_VIEW, btapb.Table_FULL} {
		got := get(v)
		if len(got.GetClusterStates()) != 1 || (len(got.GetColumnFamilies()) > 0) != (v == btapb.Table_FULL) {
			t.Errorf("%v: got %v", v, got)
		}
		for _, s := range got.GetClusterStates() {
			if s.GetReplicationState() != btapb.Table_ClusterState_READY {
				t.Errorf("%v: got %v", v, s)
			}
		}
	}
	_, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: 99})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testInstance + "/tables/nope"})
	wantCode(t, err, codes.NotFound)
}

func TestTrap61_GarbageCollection(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: &btapb.Table{
		ColumnFamilies: map[string]*btapb.ColumnFamily{
			"age":          {GcRule: maxAge(time.Hour)},
			"intersection": {GcRule: intersection(maxVersions(1), maxAge(time.Hour))},
			"nested":       {GcRule: union(maxVersions(3), intersection(maxVersions(1), maxAge(time.Hour)))},
			"none":         {},
			"union":        {GcRule: union(maxVersions(1), maxAge(time.Hour))},
			"versions":     {GcRule: maxVersions(2)},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	now := start.UnixMicro()
	old := now - 2*time.Hour.Microseconds()
	families := []string{"age", "intersection", "nested", "none", "union", "versions"}
	for _, f := range families {
		e.mustMutate("r", set(f, "q", now, "new"), set(f, "q", now-1000, "mid"), set(f, "q", old, "old"), set(f, "p", old, "old"))
	}
	if n := len(e.cells(nil)); n != 24 {
		t.Errorf("%d cells before a run; reads may show expired cells", n)
	}
	if _, err := e.srv.RunGC(e.ctx()); err != nil {
		t.Fatal(err)
	}
	short := func() []string {
		var out []string
		for _, c := range e.mustRead(&btpb.ReadRowsRequest{}).rows[0].cells {
			out = append(out, c.family+":"+c.qualifier+"="+c.value)
		}
		return out
	}
	want := []string{
		"age:q=new", "age:q=mid",
		"intersection:p=old", "intersection:q=new", "intersection:q=mid",
		"nested:p=old", "nested:q=new", "nested:q=mid",
		"none:p=old", "none:q=new", "none:q=mid", "none:q=old",
		"union:q=new",
		"versions:p=old", "versions:q=new", "versions:q=mid",
	}
	if got := short(); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	// A rewritten cell appears once.
	e.mustMutate("r", set("age", "p", now, "again"))
	if got := short(); got[0] != "age:p=again" || len(got) != len(want)+1 {
		t.Errorf("got %v", got)
	}

	for name, r := range map[string]*btapb.GcRule{
		"zero versions":      maxVersions(0),
		"negative versions":  maxVersions(-1),
		"no age":             maxAge(0),
		"short age":          maxAge(time.Microsecond),
		"bad duration":       {Rule: &btapb.GcRule_MaxAge{MaxAge: &durationpb.Duration{Seconds: 1 << 60}}},
		"empty union":        union(),
		"empty intersection": intersection(),
		"empty inside":       union(maxVersions(1), &btapb.GcRule{}),
		"too long":           union(slices.Repeat([]*btapb.GcRule{maxVersions(1)}, 200)...),
	} {
		_, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{
			Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{createFamily("new", &btapb.ColumnFamily{GcRule: r})},
		})
		if err == nil {
			t.Errorf("%s was accepted", name)
			continue
		}
		wantCode(t, err, codes.InvalidArgument)
	}
}

func TestDeleteTable(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 0, "1"))
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	_, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
	wantCode(t, err, codes.NotFound)
	_, err = e.read(&btpb.ReadRowsRequest{})
	wantCode(t, err, codes.NotFound)
	e.createTable("t", "f")
	e.wantCells(nil)
}

func TestPingAndWarm(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, err := e.data.PingAndWarm(e.ctx(), &btpb.PingAndWarmRequest{Name: "projects/{project}/instances/any"})
	wantCode(t, err, codes.OK)
	_, err = e.data.PingAndWarm(e.ctx(), &btpb.PingAndWarmRequest{})
	wantCode(t, err, codes.InvalidArgument)
}
