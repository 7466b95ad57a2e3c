package emu

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/engine"
)

// columnsOf returns a family's columns in a view.
type columnsOf struct {
	family string
	subset *btapb.AuthorizedView_FamilySubsets
}

// columns returns qualifiers of a family, separated by commas, and qualifier prefixes.
func columns(family, qualifiers string, prefixes ...string) columnsOf {
	s := &btapb.AuthorizedView_FamilySubsets{}
	for _, q := range strings.FieldsFunc(qualifiers, func(r rune) bool { return r == ',' }) {
		s.Qualifiers = append(s.Qualifiers, []byte(q))
	}
	for _, p := range prefixes {
		s.QualifierPrefixes = append(s.QualifierPrefixes, []byte(p))
	}
	return columnsOf{family, s}
}

func subset(rowPrefixes []string, of ...columnsOf) *btapb.AuthorizedView_SubsetView {
	d := &btapb.AuthorizedView_SubsetView{FamilySubsets: map[string]*btapb.AuthorizedView_FamilySubsets{}}
	for _, p := range rowPrefixes {
		d.RowPrefixes = append(d.RowPrefixes, []byte(p))
	}
	for _, c := range of {
		d.FamilySubsets[c.family] = c.subset
	}
	return d
}

func viewOf(d *btapb.AuthorizedView_SubsetView) *btapb.AuthorizedView {
	return &btapb.AuthorizedView{AuthorizedView: &btapb.AuthorizedView_SubsetView_{SubsetView: d}}
}

func viewName(id string) string { return testTable + "/authorizedViews/" + id }

// mustCreateView creates a view of table t and returns its name.
func (e *env) mustCreateView(id string, v *btapb.AuthorizedView) string {
	e.t.Helper()
	if _, err := e.createView(id, v); err != nil {
		e.t.Fatal(err)
	}
	return viewName(id)
}

func (e *env) createView(id string, v *btapb.AuthorizedView) (*btapb.AuthorizedView, error) {
	e.t.Helper()
	op, err := e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{Parent: testTable, AuthorizedViewId: id, AuthorizedView: v})
	if err != nil {
		return nil, err
	}
	return response[*btapb.AuthorizedView](e, op, nil), nil
}

func (e *env) updateView(v *btapb.AuthorizedView, paths ...string) (*btapb.AuthorizedView, error) {
	e.t.Helper()
	req := &btapb.UpdateAuthorizedViewRequest{AuthorizedView: v}
	if len(paths) > 0 {
		req.UpdateMask = mask(paths...)
	}
	op, err := e.admin.UpdateAuthorizedView(e.ctx(), req)
	if err != nil {
		return nil, err
	}
	meta, err := op.GetMetadata().UnmarshalNew()
	if m, ok := meta.(*btapb.UpdateAuthorizedViewMetadata); err != nil || !ok || !proto.Equal(m.GetOriginalRequest(), req) || m.GetFinishTime() == nil || m.GetRequestTime() == nil {
		e.t.Errorf("metadata: %v, %v", meta, err)
	}
	return response[*btapb.AuthorizedView](e, op, nil), nil
}

func (e *env) getView(name string) (*btapb.AuthorizedView, error) {
	return e.admin.GetAuthorizedView(e.ctx(), &btapb.GetAuthorizedViewRequest{Name: name})
}

func (e *env) deleteView(name, etag string) error {
	_, err := e.admin.DeleteAuthorizedView(e.ctx(), &btapb.DeleteAuthorizedViewRequest{Name: name, Etag: etag})
	return err
}

func (e *env) deleteTable() error {
	_, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
	return err
}

// readThrough reads through a view and returns one short text per cell.
func (e *env) readThrough(view string, req *btpb.ReadRowsRequest) []string {
	e.t.Helper()
	req.AuthorizedViewName = view
	res, err := readRows(e.ctx(), e.data, req)
	if err != nil {
		e.t.Fatal(err)
	}
	var out []string
	for _, r := range res.rows {
		for _, c := range r.cells {
			out = append(out, fmt.Sprintf("%s %s:%s@%d=%s", r.key, c.family, c.qualifier, c.micros, c.value))
		}
	}
	return out
}

func wantTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// wantOutside checks that a write was rejected because of its view.
func wantOutside(t *testing.T, what string, err error) {
	t.Helper()
	if st := status.Convert(err); st.Code() != codes.PermissionDenied || !strings.Contains(st.Message(), "outside the Authorized View") {
		t.Errorf("%s: got %v, want PermissionDenied, outside the Authorized View", what, err)
	}
}

func TestTrap134_GetAuthorizedView(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	d := subset([]string{"r1"}, columns("f", "a,b", "p"))
	given := viewOf(d)
	given.DeletionProtection = true
	name := e.mustCreateView("v", given)
	for as, want := range map[btapb.AuthorizedView_ResponseView]*btapb.AuthorizedView{
		btapb.AuthorizedView_RESPONSE_VIEW_UNSPECIFIED: {Name: name, DeletionProtection: true, AuthorizedView: given.GetAuthorizedView()},
		btapb.AuthorizedView_FULL:                      {Name: name, DeletionProtection: true, AuthorizedView: given.GetAuthorizedView()},
		btapb.AuthorizedView_BASIC:                     {Name: name, DeletionProtection: true},
		btapb.AuthorizedView_NAME_ONLY:                 {Name: name},
	} {
		got, err := e.admin.GetAuthorizedView(e.ctx(), &btapb.GetAuthorizedViewRequest{Name: name, View: as})
		if err != nil {
			t.Fatal(err)
		}
		if hasEtag := got.GetEtag() != ""; hasEtag != (as != btapb.AuthorizedView_NAME_ONLY) {
			t.Errorf("%v: etag %q", as, got.GetEtag())
		}
		got.Etag = ""
		if !proto.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", as, got, want)
		}
	}
	_, err := e.admin.GetAuthorizedView(e.ctx(), &btapb.GetAuthorizedViewRequest{Name: name, View: 77})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.getView(viewName("w"))
	wantCode(t, err, codes.NotFound)
	_, err = e.getView(testTable)
	wantCode(t, err, codes.InvalidArgument)
}

// TestTrap135_UsableAtOnce uses views without waiting for their operations.
func TestTrap135_UsableAtOnce(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	for _, id := range []string{"v2", "v1", "v3"} {
		if _, err := e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{
			Parent: testTable, AuthorizedViewId: id, AuthorizedView: viewOf(subset(nil)),
		}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for token := ""; ; {
		resp, err := e.admin.ListAuthorizedViews(e.ctx(), &btapb.ListAuthorizedViewsRequest{Parent: testTable, PageSize: 2, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range resp.GetAuthorizedViews() {
			if !proto.Equal(v, &btapb.AuthorizedView{Name: v.GetName()}) {
				t.Errorf("%v: more than the name", v)
			}
			names = append(names, v.GetName())
		}
		if token = resp.GetNextPageToken(); token == "" {
			break
		}
	}
	wantTexts(t, "list", names, viewName("v1"), viewName("v2"), viewName("v3"))
	for _, req := range []*btapb.ListAuthorizedViewsRequest{{Parent: testTable, PageSize: -1}, {Parent: testTable, PageToken: "!"}, {Parent: testTable, View: 9}, {Parent: "t"}} {
		_, err := e.admin.ListAuthorizedViews(e.ctx(), req)
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err := e.admin.ListAuthorizedViews(e.ctx(), &btapb.ListAuthorizedViewsRequest{Parent: testTable + "x"})
	wantCode(t, err, codes.NotFound)
	full, err := e.admin.ListAuthorizedViews(e.ctx(), &btapb.ListAuthorizedViewsRequest{Parent: testTable, View: btapb.AuthorizedView_FULL})
	if err != nil || full.GetAuthorizedViews()[0].GetSubsetView() == nil {
		t.Errorf("%v, %v", full, err)
	}
}

func TestCreateAuthorizedView_Refusals(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustCreateView("v", viewOf(subset(nil)))
	many := func(n int) *btapb.AuthorizedView {
		var prefixes []string
		for i := range n {
			prefixes = append(prefixes, fmt.Sprint(i))
		}
		return viewOf(subset(prefixes))
	}
	for _, tc := range []struct {
		parent, id string
		view       *btapb.AuthorizedView
		want       []codes.Code
	}{
		{testTable, "v", viewOf(subset(nil)), []codes.Code{codes.AlreadyExists}},
		{testTable, "n", nil, []codes.Code{codes.InvalidArgument}},
		{testTable, "n", &btapb.AuthorizedView{}, []codes.Code{codes.InvalidArgument}},
		{testTable, "", viewOf(subset(nil)), []codes.Code{codes.InvalidArgument}},
		{testTable, "-n", viewOf(subset(nil)), []codes.Code{codes.InvalidArgument}},
		{testTable, "n/m", viewOf(subset(nil)), []codes.Code{codes.InvalidArgument}},
		{testTable, strings.Repeat("n", 51), viewOf(subset(nil)), []codes.Code{codes.InvalidArgument}},
		{testTable + "x", "n", viewOf(subset(nil)), []codes.Code{codes.NotFound}},
		{testInstance, "n", viewOf(subset(nil)), []codes.Code{codes.InvalidArgument}},
		// The error code for missing families is not documented.
		{testTable, "n", viewOf(subset(nil, columns("g", ""))), []codes.Code{codes.InvalidArgument, codes.NotFound}},
		{testTable, "n", many(101), []codes.Code{codes.InvalidArgument}},
		{testTable, "n", viewOf(subset([]string{big(4097)})), []codes.Code{codes.InvalidArgument}},
		{testTable, "n", viewOf(subset(nil, columns("f", "", big(16<<10+1)))), []codes.Code{codes.InvalidArgument}},
		{testTable, strings.Repeat("n", 50), many(100), []codes.Code{codes.OK}},
	} {
		_, err := e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{Parent: tc.parent, AuthorizedViewId: tc.id, AuthorizedView: tc.view})
		wantCode(t, err, tc.want...)
	}
}

func TestTrap136_EmptySubset(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 0, "v"))
	view := e.mustCreateView("v", viewOf(&btapb.AuthorizedView_SubsetView{}))
	if got, err := e.getView(view); err != nil || got.GetSubsetView() == nil {
		t.Errorf("%v, %v", got, err)
	}
	wantTexts(t, "read", e.readThrough(view, &btpb.ReadRowsRequest{}))
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{AuthorizedViewName: view, RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}})
	wantOutside(t, "write", err)
	// Belief: the result is the sample of the end, or empty.
	wantBelief(t, "samples", func() string {
		return strings.Join(e.sampleKeys(&btpb.SampleRowKeysRequest{AuthorizedViewName: view}), " ")
	}, "", `""`)
}

// sampleKeys returns the keys from SampleRowKeys.
func (e *env) sampleKeys(req *btpb.SampleRowKeysRequest) []string {
	e.t.Helper()
	stream, err := e.data.SampleRowKeys(e.ctx(), req)
	var out []string
	last := int64(0)
	for err == nil {
		var resp *btpb.SampleRowKeysResponse
		if resp, err = stream.Recv(); err == nil {
			out = append(out, name(string(resp.GetRowKey())))
			if resp.GetOffsetBytes() < last {
				e.t.Errorf("the offset falls from %d to %d", last, resp.GetOffsetBytes())
			}
			last = resp.GetOffsetBytes()
		}
	}
	if !errors.Is(err, io.EOF) {
		e.t.Error(err)
	}
	return out
}

func TestTrap137_UpdateMasks(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f", "g")
	d := subset([]string{"r1"}, columns("f", "a"))
	given := viewOf(d)
	given.DeletionProtection = true
	name := e.mustCreateView("v", given)
	want := func(what string, got *btapb.AuthorizedView, err error, protected bool, d *btapb.AuthorizedView_SubsetView) {
		t.Helper()
		if err != nil || got.GetDeletionProtection() != protected || !proto.Equal(got.GetSubsetView(), d) {
			t.Errorf("%s: got %v, %v; want protection %v and %v", what, got, err, protected, d)
		}
		if stored, err := e.getView(name); err != nil || !proto.Equal(stored, got) {
			t.Errorf("%s: stored %v, %v; answered %v", what, stored, err, got)
		}
	}
	got, err := e.updateView(&btapb.AuthorizedView{Name: name})
	want("an empty mask and false", got, err, true, d)
	got, err = e.updateView(&btapb.AuthorizedView{Name: name}, "deletion_protection")
	want("deletion_protection", got, err, false, d)
	got, err = e.updateView(&btapb.AuthorizedView{Name: name, DeletionProtection: true})
	want("an empty mask and true", got, err, true, d)
	rows := subset([]string{"r2"})
	got, err = e.updateView(&btapb.AuthorizedView{Name: name, AuthorizedView: viewOf(rows).GetAuthorizedView()}, "subset_view.row_prefixes")
	want("row_prefixes", got, err, true, subset([]string{"r2"}, columns("f", "a")))
	got, err = e.updateView(&btapb.AuthorizedView{Name: name, AuthorizedView: viewOf(subset(nil, columns("g", "", ""))).GetAuthorizedView()}, "subset_view.family_subsets")
	want("family_subsets", got, err, true, subset([]string{"r2"}, columns("g", "", "")))
	got, err = e.updateView(&btapb.AuthorizedView{Name: name, AuthorizedView: viewOf(d).GetAuthorizedView()})
	want("an empty mask and a subset", got, err, true, d)
	for _, paths := range [][]string{{"name"}, {"etag"}, {"subset_view.x"}, {"subset_view.family_subsets.f"}, {"deletion_protection", "*"}, {"authorized_view"}} {
		_, err := e.updateView(&btapb.AuthorizedView{Name: name}, paths...)
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err = e.updateView(&btapb.AuthorizedView{Name: name, AuthorizedView: viewOf(subset(nil, columns("h", ""))).GetAuthorizedView()})
	wantCode(t, err, codes.InvalidArgument, codes.NotFound)
	_, err = e.updateView(&btapb.AuthorizedView{Name: name + "x"})
	wantCode(t, err, codes.NotFound)
	_, err = e.updateView(nil)
	wantCode(t, err, codes.InvalidArgument)
	got, err = e.updateView(&btapb.AuthorizedView{Name: name}, "*")
	want("* with the name alone", got, err, false, &btapb.AuthorizedView_SubsetView{})
}

func TestTrap138_Etags(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	a, b := viewOf(subset([]string{"a"})), viewOf(subset([]string{"b"}))
	created, err := e.createView("v", a)
	if err != nil || created.GetEtag() == "" {
		t.Fatalf("%v, %v", created, err)
	}
	name, seen := created.GetName(), map[string]bool{created.GetEtag(): true}
	for i := range 4 {
		to := &btapb.AuthorizedView{Name: name, AuthorizedView: []*btapb.AuthorizedView{b, a}[i%2].GetAuthorizedView()}
		got, err := e.updateView(to)
		if err != nil || seen[got.GetEtag()] {
			t.Errorf("%v, %v: an etag comes again", got, err)
		}
		seen[got.GetEtag()] = true
	}
	_, err = e.updateView(&btapb.AuthorizedView{Name: name, Etag: created.GetEtag(), AuthorizedView: b.GetAuthorizedView()})
	wantCode(t, err, codes.Aborted)
	wantCode(t, e.deleteView(name, created.GetEtag()), codes.Aborted)
	now, err := e.getView(name)
	if err != nil {
		t.Fatal(err)
	}
	if now, err = e.updateView(&btapb.AuthorizedView{Name: name, Etag: now.GetEtag(), AuthorizedView: b.GetAuthorizedView()}); err != nil {
		t.Error(err)
	}
	wantCode(t, e.deleteView(name, now.GetEtag()), codes.OK)
	_, err = e.getView(name)
	wantCode(t, err, codes.NotFound)
	// A new table of the same name is a different table.
	if again, err := e.createView("v", a); err != nil || seen[again.GetEtag()] {
		t.Errorf("%v, %v: an etag comes again", again, err)
	}
}

func TestTrap139_ProtectedViews(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.createTable("t", "f")
	e.mustMutate("r", set("f", "q", 0, "v"))
	given := viewOf(subset([]string{""}, columns("f", "", "")))
	given.DeletionProtection = true
	view := e.mustCreateView("v", given)
	policy := &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/bigtable.user", Members: []string{"user:a@b.c"}}}}
	if _, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: view, Policy: policy}); err != nil {
		t.Fatal(err)
	}
	e = e.restart(dir)
	wantCode(t, e.deleteView(view, ""), codes.FailedPrecondition)
	wantCode(t, e.deleteTable(), codes.FailedPrecondition)
	_, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance})
	wantCode(t, err, codes.FailedPrecondition)
	wantTexts(t, "through the view", e.readThrough(view, &btpb.ReadRowsRequest{}), "r f:q@0=v")

	if _, err := e.updateView(&btapb.AuthorizedView{Name: view}, "deletion_protection"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, e.deleteTable(), codes.OK)
	_, err = e.getView(view)
	wantCode(t, err, codes.NotFound)
	_, err = e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: view})
	wantCode(t, err, codes.NotFound)
	_, err = readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{AuthorizedViewName: view})
	wantCode(t, err, codes.NotFound)
	// UndeleteTable restores the view and its policy, like the table's own policy.
	if _, err := e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, "after UndeleteTable", e.readThrough(view, &btpb.ReadRowsRequest{}), "r f:q@0=v")
	if p, err := e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: view}); err != nil || len(p.GetBindings()) != 1 {
		t.Errorf("%v, %v", p, err)
	}
	// A new table of the same name has neither.
	wantCode(t, e.deleteTable(), codes.OK)
	e.createTable("t", "f")
	_, err = e.getView(view)
	wantCode(t, err, codes.NotFound)
	e.mustCreateView("v", viewOf(subset(nil)))
	if p, err := e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: view}); err != nil || len(p.GetBindings()) != 0 {
		t.Errorf("%v, %v", p, err)
	}
	// Deleting the instance deletes everything.
	if _, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance}); err != nil {
		t.Fatal(err)
	}
	if left, err := e.db.Resources(admin.KindAuthorizedView); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestDeleteTable_OfAPrefix: deleting t does not affect views of t1.
func TestDeleteTable_OfAPrefix(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	given := viewOf(subset(nil))
	given.DeletionProtection = true
	e.mustCreateView("v", given)
	e.createTable("t1")
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable + "1"}); err != nil {
		t.Error(err)
	}
	e.createTable("t1")
	if _, err := e.getView(viewName("v")); err != nil {
		t.Error(err)
	}
}

func TestTrap165_TestIamPermissions(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	view := e.mustCreateView("v", viewOf(subset(nil)))
	asked := []string{"bigtable.authorizedViews.update", "bigtable.authorizedViews.get", "bigtable.authorizedViews.update"}
	bundle := e.mustCreateBundle("s", avroBundle(`"int"`)).GetName()
	backup := e.backup("b", nil)
	for resource, want := range map[string][]string{backup: asked, backup + "x": nil, bundle: asked, bundle + "x": nil, view: asked, view + "x": nil, testTable: asked, testTable + "x/authorizedViews/v": nil} {
		got, err := e.admin.TestIamPermissions(e.ctx(), &iampb.TestIamPermissionsRequest{Resource: resource, Permissions: asked})
		if err != nil {
			t.Error(err)
		}
		wantTexts(t, resource, got.GetPermissions(), want...)
	}
	for _, resource := range []string{testInstance, "", view + "/x/y"} {
		_, err := e.admin.TestIamPermissions(e.ctx(), &iampb.TestIamPermissionsRequest{Resource: resource, Permissions: asked})
		wantCode(t, err, codes.InvalidArgument)
		_, err = e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: resource})
		wantCode(t, err, codes.InvalidArgument)
	}
}

func TestTrap166_PoliciesOfTheDeleted(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	policy := &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/bigtable.user", Members: []string{"user:a@b.c"}}}}
	has := func(resource string) bool {
		t.Helper()
		p, err := e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: resource})
		if err != nil {
			t.Fatal(err)
		}
		return len(p.GetBindings()) > 0
	}
	view := e.mustCreateView("v", viewOf(subset(nil)))
	bundle := e.mustCreateBundle("s", avroBundle(`"int"`)).GetName()
	backup := e.backup("b", nil)
	for _, resource := range []string{testTable, view, bundle, backup} {
		if _, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: resource, Policy: proto.CloneOf(policy)}); err != nil || !has(resource) {
			t.Fatal(err)
		}
	}
	wantCode(t, e.deleteView(view, ""), codes.OK)
	e.mustCreateView("v", viewOf(subset(nil)))
	wantCode(t, e.deleteBundle(bundle, ""), codes.OK)
	e.mustCreateBundle("s", avroBundle(`"int"`))
	if _, err := e.admin.DeleteBackup(e.ctx(), &btapb.DeleteBackupRequest{Name: backup}); err != nil {
		t.Fatal(err)
	}
	e.backup("b", nil)
	if has(view) || has(bundle) || has(backup) || !has(testTable) {
		t.Error("the policy of a deleted view, bundle or backup is there, or that of its table is not")
	}
	wantCode(t, e.deleteTable(), codes.OK)
	e.createTable("t", "f")
	if has(testTable) {
		t.Error("the policy of a deleted table is there")
	}
}
