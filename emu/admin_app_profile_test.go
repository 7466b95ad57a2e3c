package emu

import (
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

func standard(p *btapb.AppProfile, priority btapb.AppProfile_Priority) *btapb.AppProfile {
	p.Isolation = &btapb.AppProfile_StandardIsolation_{StandardIsolation: &btapb.AppProfile_StandardIsolation{Priority: priority}}
	return p
}

func dataBoost(p *btapb.AppProfile, owner btapb.AppProfile_DataBoostIsolationReadOnly_ComputeBillingOwner) *btapb.AppProfile {
	p.Isolation = &btapb.AppProfile_DataBoostIsolationReadOnly_{DataBoostIsolationReadOnly: &btapb.AppProfile_DataBoostIsolationReadOnly{ComputeBillingOwner: &owner}}
	return p
}

func (e *env) appProfile(id string) *btapb.AppProfile {
	e.t.Helper()
	p, err := e.instances().GetAppProfile(e.ctx(), &btapb.GetAppProfileRequest{Name: testInstance + "/appProfiles/" + id})
	if err != nil {
		e.t.Fatal(err)
	}
	return p
}

func TestAppProfiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.mustCreateInstance("i", nodes("z1", 1), nodes("z2", 1))
	const high = btapb.AppProfile_PRIORITY_HIGH
	named := func(p *btapb.AppProfile, id string) *btapb.AppProfile {
		p.Name = testInstance + "/appProfiles/" + id
		return p
	}
	wantProto(t, e.appProfile("default"), named(standard(anyCluster(), high), "default"))

	old := singleCluster("c1", false)
	old.Isolation = &btapb.AppProfile_Priority_{Priority: btapb.AppProfile_PRIORITY_LOW} //nolint:staticcheck // deprecated, and still sent
	affine := anyCluster("c1", "c2")
	affine.GetMultiClusterRoutingUseAny().Affinity = &btapb.AppProfile_MultiClusterRoutingUseAny_RowAffinity_{RowAffinity: &btapb.AppProfile_MultiClusterRoutingUseAny_RowAffinity{}}
	affine.Etag, affine.Description = "output only", "near"
	for id, p := range map[string]*btapb.AppProfile{
		"any": anyCluster(), "one": singleCluster("c1", true), "_old.1": old, "affine": affine,
		"boost": dataBoost(singleCluster("c2", false), btapb.AppProfile_DataBoostIsolationReadOnly_HOST_PAYS),
	} {
		if err := e.createAppProfile(testInstance, id, p); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	wantProto(t, e.appProfile("any"), named(standard(anyCluster(), high), "any"))
	wantProto(t, e.appProfile("_old.1"), named(standard(singleCluster("c1", false), btapb.AppProfile_PRIORITY_LOW), "_old.1"))
	if p := e.appProfile("affine"); p.GetEtag() != "" || p.GetDescription() != "near" || p.GetMultiClusterRoutingUseAny().GetRowAffinity() == nil {
		t.Errorf("got %v", p)
	}
	wantCode(t, e.createAppProfile(testInstance, "any", anyCluster()), codes.AlreadyExists)
	wantCode(t, e.createAppProfile("projects/p/instances/nope", "any", anyCluster()), codes.NotFound)
	for name, p := range map[string]*btapb.AppProfile{
		"nil":                nil,
		"no routing":         {},
		"unknown cluster":    singleCluster("nope", false),
		"no cluster":         singleCluster("", false),
		"unknown clusters":   anyCluster("c1", "nope"),
		"priority":           standard(anyCluster(), 9),
		"boost any":          dataBoost(anyCluster(), btapb.AppProfile_DataBoostIsolationReadOnly_HOST_PAYS),
		"boost transactions": dataBoost(singleCluster("c1", true), btapb.AppProfile_DataBoostIsolationReadOnly_HOST_PAYS),
		"boost owner":        dataBoost(singleCluster("c1", false), 0),
	} {
		if err := e.createAppProfile(testInstance, "bad", p); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
	}
	for _, id := range []string{"", "-a", "a b", "a/b", strings.Repeat("a", 51)} {
		wantCode(t, e.createAppProfile(testInstance, id, anyCluster()), codes.InvalidArgument)
	}

	// Transactions in two clusters cause a warning.
	wantCode(t, e.createAppProfile(testInstance, "two", singleCluster("c2", true)), codes.FailedPrecondition)
	_, err := e.instances().CreateAppProfile(e.ctx(), &btapb.CreateAppProfileRequest{
		Parent: testInstance, AppProfileId: "two", AppProfile: singleCluster("c2", true), IgnoreWarnings: true,
	})
	wantCode(t, err, codes.OK)

	e = e.restart(dir)
	var ids []string
	req := &btapb.ListAppProfilesRequest{Parent: testInstance, PageSize: 2}
	for {
		resp, err := e.instances().ListAppProfiles(e.ctx(), req)
		if err != nil || len(resp.GetAppProfiles()) > 2 {
			t.Fatal(resp, err)
		}
		for _, p := range resp.GetAppProfiles() {
			ids = append(ids, resname.Last(p.GetName()))
		}
		if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "_old.1 affine any boost default one two" {
		t.Errorf("profiles: %s", got)
	}
	_, err = e.instances().ListAppProfiles(e.ctx(), &btapb.ListAppProfilesRequest{Parent: testInstance, PageSize: -1})
	wantCode(t, err, codes.InvalidArgument)

	del := func(id string, ignore bool) error {
		_, err := e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/" + id, IgnoreWarnings: ignore})
		return err
	}
	wantCode(t, del("any", false), codes.FailedPrecondition)
	wantCode(t, del("any", true), codes.OK)
	wantCode(t, del("any", true), codes.NotFound)
}

func TestUpdateAppProfile(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z1", 1))
	p := singleCluster("c1", true)
	p.Description = "old"
	if err := e.createAppProfile(testInstance, "x", p); err != nil {
		t.Fatal(err)
	}
	update := func(p *btapb.AppProfile, m *fieldmaskpb.FieldMask) (*btapb.AppProfile, error) {
		p.Name = testInstance + "/appProfiles/x"
		op, err := e.instances().UpdateAppProfile(e.ctx(), &btapb.UpdateAppProfileRequest{AppProfile: p, UpdateMask: m})
		if err != nil {
			return nil, err
		}
		got := response[*btapb.AppProfile](e, op, nil)
		wantProto(t, e.appProfile("x"), got)
		return got, nil
	}
	got, err := update(&btapb.AppProfile{Description: "new"}, mask("description"))
	if err != nil || got.GetDescription() != "new" || !got.GetSingleClusterRouting().GetAllowTransactionalWrites() {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = update(singleCluster("ignored", false), mask("single_cluster_routing.allow_transactional_writes"))
	if err != nil || got.GetSingleClusterRouting().GetClusterId() != "c1" || got.GetSingleClusterRouting().GetAllowTransactionalWrites() {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = update(anyCluster("c1"), mask("multi_cluster_routing_use_any"))
	if err != nil || got.GetMultiClusterRoutingUseAny() == nil || got.GetDescription() != "new" {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = update(standard(&btapb.AppProfile{}, btapb.AppProfile_PRIORITY_MEDIUM), mask("standard_isolation.priority"))
	if err != nil || got.GetStandardIsolation().GetPriority() != btapb.AppProfile_PRIORITY_MEDIUM {
		t.Errorf("got %v, %v", got, err)
	}
	// Without a mask all fields are replaced.
	got, err = update(singleCluster("c1", true), nil)
	if err != nil || got.GetDescription() != "" || got.GetStandardIsolation().GetPriority() != btapb.AppProfile_PRIORITY_HIGH {
		t.Errorf("got %v, %v", got, err)
	}
	for _, m := range []*fieldmaskpb.FieldMask{{}, mask("*"), mask("name"), mask("etag"), mask("multi_cluster_routing_use_any"), mask("standard_isolation.nope")} {
		_, err = update(singleCluster("c1", true), m)
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err = update(&btapb.AppProfile{}, nil) // no routing
	wantCode(t, err, codes.InvalidArgument)
	_, err = update(&btapb.AppProfile{Etag: "stale"}, mask("description"))
	wantCode(t, err, codes.Aborted)
	_, err = e.instances().UpdateAppProfile(e.ctx(), &btapb.UpdateAppProfileRequest{AppProfile: &btapb.AppProfile{Name: testInstance + "/appProfiles/nope"}, UpdateMask: mask("description")})
	wantCode(t, err, codes.NotFound)
	_, err = e.instances().UpdateAppProfile(e.ctx(), &btapb.UpdateAppProfileRequest{})
	wantCode(t, err, codes.InvalidArgument)
}
