package emu

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/rowchunks"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// TestLimits exceeds each size limit by one: the request is rejected, or accepted without
// limits. The trap tests cover sizes within the limits; TestTableCount covers the number of
// tables.
func TestLimits(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	const table = testTable
	long := func(n int) string { return strings.Repeat("x", n+1) }
	muts := slices.Repeat([]*btpb.Mutation{set("f", "q", 0, "")}, limits.MaxMutations+1)
	requests := map[string]func(e *env) error{
		"row key":   func(e *env) error { return e.mutate(long(limits.MaxRowKeyBytes), muts[0]) },
		"qualifier": func(e *env) error { return e.mutate("r", set("f", long(limits.MaxQualifierBytes), 0, "")) },
		"value":     func(e *env) error { return e.srv.limits.CheckValue("value", make([]byte, limits.MaxValueBytes+1)) }, // nothing to store
		"row": func(e *env) error {
			const scale = 1 << 20 // a row of the full limit takes seconds to quote in the error
			limit := e.srv.rowLimitBytes()
			if limit > 0 && limit != limits.MaxRowBytes {
				t.Errorf("the limit of a row is %d, want %d", limit, limits.MaxRowBytes)
			}
			w := &rowchunks.Writer{Send: func(*btpb.ReadRowsResponse) error { return nil }, RowLimitBytes: limit / scale}
			w.Begin(make([]byte, limits.MaxRowBytes/scale)) // a key counts too
			return w.Add(&filter.Cell{Family: "f"})
		},
		"mutations": func(e *env) error { return e.mutate("r", muts...) },
		"mutations of all entries": func(e *env) error {
			_, err := e.mutateRows(entry("r", muts[0]), entry("r", muts[1:]...))
			return err
		},
		"mutations of a branch": func(e *env) error {
			_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{TableName: table, RowKey: []byte("r"), TrueMutations: muts})
			return err
		},
		"rules": func(e *env) error {
			rules := slices.Repeat([]*btpb.ReadModifyWriteRule{appendRule("f", "q", "")}, limits.MaxMutations+1)
			_, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: table, RowKey: []byte("r"), Rules: rules})
			return err
		},
		"bytes of a filter": func(e *env) error {
			_, err := e.read(&btpb.ReadRowsRequest{Filter: valueRegexOf(long(limits.MaxFilterBytes))})
			return err
		},
		"depth of a filter": func(e *env) error {
			_, err := e.read(&btpb.ReadRowsRequest{Filter: nestedFilter(limits.MaxFilterDepth + 1)})
			return err
		},
		"key to read": func(e *env) error {
			_, err := e.read(&btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{bytes.Repeat([]byte("k"), limits.MaxRowKeyBytes+1)}}})
			return err
		},
		"bound to read": func(e *env) error {
			_, err := e.read(&btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowRanges: []*btpb.RowRange{closedOpen("a", long(limits.MaxRowKeyBytes+1))}}})
			return err
		},
		"table id": func(e *env) error {
			_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: long(limits.MaxResourceIDBytes)})
			return err
		},
		"family name": func(e *env) error {
			families := map[string]*btapb.ColumnFamily{long(limits.MaxFamilyNameBytes): {}}
			_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "u", Table: &btapb.Table{ColumnFamilies: families}})
			return err
		},
		"families of a new table": func(e *env) error {
			families := map[string]*btapb.ColumnFamily{}
			for i := range limits.MaxFamilies + 1 {
				families[fmt.Sprint("f", i)] = &btapb.ColumnFamily{}
			}
			_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "w", Table: &btapb.Table{ColumnFamilies: families}})
			return err
		},
		"families that are added": func(e *env) error {
			var mods []*btapb.ModifyColumnFamiliesRequest_Modification
			for i := range limits.MaxFamilies {
				mods = append(mods, &btapb.ModifyColumnFamiliesRequest_Modification{Id: fmt.Sprint("f", i), Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}}})
			}
			_, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{Name: testTable, Modifications: mods})
			return err
		},
		"bytes of a rule": func(e *env) error {
			families := map[string]*btapb.ColumnFamily{"f": {GcRule: union(slices.Repeat([]*btapb.GcRule{maxVersions(1)}, limits.MaxGCRuleBytes/4+1)...)}}
			_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "v", Table: &btapb.Table{ColumnFamilies: families}})
			return err
		},
		"instance id": func(e *env) error { return e.createInstance(long(limits.MaxInstanceIDBytes), nodes("z", 1)) },
		"app profile id": func(e *env) error {
			return e.createAppProfile(testInstance, long(limits.MaxAppProfileIDBytes), singleCluster(instancedef.ImplicitCluster, true))
		},
		"labels": func(e *env) error {
			labels := map[string]string{}
			for i := range instancedef.MaxLabels + 1 {
				labels[fmt.Sprint("k", i)] = ""
			}
			return instancedef.CheckLabels(labels, e.srv.limits)
		},
		"label": func(e *env) error {
			return instancedef.CheckLabels(map[string]string{"k": long(instancedef.MaxLabelRunes)}, e.srv.limits)
		},
		"bytes of label": func(e *env) error {
			return instancedef.CheckLabels(map[string]string{"k": strings.Repeat("語", 43)}, e.srv.limits)
		},
		"principals": func(e *env) error {
			members := slices.Repeat([]string{"allUsers"}, limits.MaxPolicyPrincipals+1)
			_, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{
				Resource: table, Policy: &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/viewer", Members: members}}},
			})
			return err
		},
	}
	for mode, want := range map[Limits]codes.Code{StrictLimits: codes.InvalidArgument, NoLimits: codes.OK} {
		e := newEnvWith(t, Options{Limits: mode}, engine.Options{})
		e.createTable("t", "f")
		for name, request := range requests {
			err := request(e)
			if name == "row" && mode == StrictLimits {
				wantCode(t, err, codes.FailedPrecondition)
				continue
			}
			if wantCode(t, err, want); t.Failed() {
				t.Fatalf("%s, limits %d", name, mode)
			}
		}
	}
}

// TestLimits_Off: without limits, the rules that do not concern size still hold.
func TestLimits_Off(t *testing.T) {
	t.Parallel()
	e := newEnvWith(t, Options{Limits: NoLimits}, engine.Options{})
	e.createTable("t", "f")
	e.mustMutate(strings.Repeat("k", 5000), set("f", strings.Repeat("q", 20_000), 1000, "1"))
	wantCode(t, e.mutate("", set("f", "q", 1000, "1")), codes.InvalidArgument)
	wantCode(t, e.mutate("r", set("f", "q", 1, "1")), codes.InvalidArgument)
	if n := len(e.cells(nestedFilter(30))); n != 1 {
		t.Errorf("%d cells through a deep filter", n)
	}
	_, err := e.read(&btpb.ReadRowsRequest{Filter: nestedFilter(5000)})
	wantCode(t, err, codes.InvalidArgument)
}
