package admin

import (
	"context"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// DefaultAppProfile is the id of the app profile that each new instance has. Requests without an
// app profile use it.
const DefaultAppProfile = "default"

// implicitAppProfile returns the initial default app profile of an instance with these clusters.
// With one cluster, the profile routes to it and allows single-row transactions; with several, it
// routes to any of them and rejects such transactions.
func implicitAppProfile(instance string, clusters []*btapb.Cluster) *btapb.AppProfile {
	p := &btapb.AppProfile{Name: instance + "/appProfiles/" + DefaultAppProfile}
	if len(clusters) == 1 {
		p.RoutingPolicy = &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{
			ClusterId:                resname.Last(clusters[0].GetName()),
			AllowTransactionalWrites: true,
		}}
	} else {
		p.RoutingPolicy = &btapb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &btapb.AppProfile_MultiClusterRoutingUseAny{}}
	}
	settleIsolation(p)
	return p
}

// settleIsolation sets a missing isolation to standard isolation, and a missing priority to high.
// It converts the deprecated field priority to standard isolation.
func settleIsolation(p *btapb.AppProfile) {
	priority := btapb.AppProfile_PRIORITY_HIGH
	switch iso := p.GetIsolation().(type) {
	case *btapb.AppProfile_DataBoostIsolationReadOnly_:
		return
	case *btapb.AppProfile_StandardIsolation_:
		if iso.StandardIsolation != nil { // nil is possible in a request that was not decoded from the wire
			if iso.StandardIsolation.GetPriority() == btapb.AppProfile_PRIORITY_UNSPECIFIED {
				iso.StandardIsolation.Priority = priority
			}
			return
		}
	case *btapb.AppProfile_Priority_:
		//nolint:staticcheck // deprecated, and still sent
		if iso.Priority != btapb.AppProfile_PRIORITY_UNSPECIFIED {
			priority = iso.Priority //nolint:staticcheck // as above
		}
	}
	p.Isolation = &btapb.AppProfile_StandardIsolation_{StandardIsolation: &btapb.AppProfile_StandardIsolation{Priority: priority}}
}

// appProfilesOf returns the app profiles of an instance, sorted by name.
func appProfilesOf(r Catalog, name string) ([]*btapb.AppProfile, error) {
	_, how, err := instance(r, name)
	if err != nil {
		return nil, err
	}
	if how == implicit {
		return []*btapb.AppProfile{implicitAppProfile(name, []*btapb.Cluster{implicitClusterOf(name, instancedef.ImplicitCluster)})}, nil
	}
	profiles, err := loadAll[btapb.AppProfile](r, kindAppProfile, name+"/appProfiles/")
	return profiles, refusal.Of(err)
}

// appProfile returns the app profile with the given name.
func appProfile(r Catalog, name string) (*btapb.AppProfile, error) {
	if !resname.HasShape(name, "projects", "instances", "appProfiles") {
		return nil, refusal.BadName("name", name, "projects/PROJECT/instances/INSTANCE/appProfiles/APP_PROFILE")
	}
	profiles, err := appProfilesOf(r, resname.First(name, 4))
	if err != nil {
		return nil, err
	}
	for _, p := range profiles {
		if p.GetName() == name {
			return p, nil
		}
	}
	return nil, refusal.NotFound("App profile", name)
}

// routesTo returns the ids of the clusters that a profile names; empty if it routes to any
// cluster.
func routesTo(p *btapb.AppProfile) []string {
	if r := p.GetSingleClusterRouting(); r != nil {
		return []string{r.GetClusterId()}
	}
	return p.GetMultiClusterRoutingUseAny().GetClusterIds()
}

// checkAppProfile checks the new state of a profile. Unless ignoreWarnings is set, it rejects p
// if p and another profile allow single-row transactions in different clusters, since both may
// change the same row.
func checkAppProfile(r Catalog, p *btapb.AppProfile, ignoreWarnings bool) error {
	name := resname.First(p.GetName(), 4)
	_, how, err := instance(r, name)
	if err != nil {
		return err
	}
	clusters, err := ClustersOf(r, name)
	if err != nil {
		return err
	}
	if p.GetRoutingPolicy() == nil {
		return refusal.Invalid("app_profile", "a routing policy must be set")
	}
	single := p.GetSingleClusterRouting()
	if single != nil && single.GetClusterId() == "" {
		return refusal.Invalid("app_profile.single_cluster_routing.cluster_id", "must be set")
	}
	for _, id := range routesTo(p) {
		ok := slices.ContainsFunc(clusters, func(c *btapb.Cluster) bool { return resname.Last(c.GetName()) == id })
		if !ok && how == recorded {
			return refusal.Invalid("app_profile", "instance %s has no cluster %q to route to", name, id)
		}
	}
	switch iso := p.GetIsolation().(type) {
	case *btapb.AppProfile_StandardIsolation_:
		priority := iso.StandardIsolation.GetPriority()
		if _, ok := btapb.AppProfile_Priority_name[int32(priority)]; !ok {
			return refusal.Invalid("app_profile.standard_isolation.priority", "%d is not a valid priority", priority)
		}
	case *btapb.AppProfile_DataBoostIsolationReadOnly_:
		if iso.DataBoostIsolationReadOnly.GetComputeBillingOwner() != btapb.AppProfile_DataBoostIsolationReadOnly_HOST_PAYS {
			return refusal.Invalid("app_profile.data_boost_isolation_read_only.compute_billing_owner", "must be HOST_PAYS")
		}
		if single == nil {
			return refusal.Invalid("app_profile.data_boost_isolation_read_only", "needs single_cluster_routing")
		}
		if single.GetAllowTransactionalWrites() {
			return refusal.Invalid("app_profile.single_cluster_routing.allow_transactional_writes", "must not be set with Data Boost, which is read-only")
		}
	}
	if ignoreWarnings || !single.GetAllowTransactionalWrites() {
		return nil
	}
	profiles, err := appProfilesOf(r, name)
	if err != nil {
		return err
	}
	for _, o := range profiles {
		other := o.GetSingleClusterRouting()
		if o.GetName() != p.GetName() && other.GetAllowTransactionalWrites() && other.GetClusterId() != single.GetClusterId() && len(clusters) > 1 {
			return refusal.Precondition("App profile %s would allow single-row transactions in cluster %s while %s allows them in cluster %s; set ignore_warnings to do so.",
				resname.Last(p.GetName()), single.GetClusterId(), resname.Last(o.GetName()), other.GetClusterId())
		}
	}
	return nil
}

// CreateAppProfile creates an app profile. As in the service, the profile does not get an etag.
func (s instanceAdminService) CreateAppProfile(ctx context.Context, req *btapb.CreateAppProfileRequest) (*btapb.AppProfile, error) {
	if err := resname.CheckInstance("parent", req.GetParent()); err != nil {
		return nil, err
	}
	if err := s.checkAppProfileID(req.GetAppProfileId()); err != nil {
		return nil, err
	}
	if req.GetAppProfile() == nil {
		return nil, refusal.Invalid("app_profile", "must be set")
	}
	p := proto.CloneOf(req.GetAppProfile())
	p.Name = req.GetParent() + "/appProfiles/" + req.GetAppProfileId()
	p.Etag = ""
	settleIsolation(p)
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := checkAppProfile(tx, p, req.GetIgnoreWarnings()); err != nil {
			return err
		}
		if err := s.production(limits.CheckDescription(p)); err != nil {
			return err
		}
		if err := record(tx, req.GetParent()); err != nil {
			return err
		}
		if found, err := loadOne(tx, kindAppProfile+p.GetName(), &btapb.AppProfile{}); err != nil {
			return err
		} else if found {
			return refusal.Exists("App profile", p.GetName())
		}
		return store(tx, kindAppProfile+p.GetName(), p)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// GetAppProfile returns an app profile.
func (s instanceAdminService) GetAppProfile(_ context.Context, req *btapb.GetAppProfileRequest) (*btapb.AppProfile, error) {
	return appProfile(s.DB, req.GetName())
}

// ListAppProfiles returns the app profiles of an instance, sorted by name, in
// pages. The instance "-" selects all instances that ListInstances returns for
// the project.
func (s instanceAdminService) ListAppProfiles(ctx context.Context, req *btapb.ListAppProfilesRequest) (*btapb.ListAppProfilesResponse, error) {
	var all []*btapb.AppProfile
	resp := &btapb.ListAppProfilesResponse{}
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		names, err := parents(tx, req.GetParent())
		if err != nil {
			return err
		}
		for _, name := range names {
			profiles, err := appProfilesOf(tx, name)
			if err != nil {
				return err
			}
			all = append(all, profiles...)
		}
		resp.FailedLocations, err = s.failedLocations(tx, names)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *btapb.AppProfile) int { return strings.Compare(a.GetName(), b.GetName()) })
	resp.AppProfiles, resp.NextPageToken, err = page(all, req.GetPageSize(), req.GetPageToken(), (*btapb.AppProfile).GetName)
	return resp, err
}

// UpdateAppProfile replaces the fields of an app profile that the mask names,
// or all fields if there is no mask. It rejects an empty mask.
func (s instanceAdminService) UpdateAppProfile(ctx context.Context, req *btapb.UpdateAppProfileRequest) (*longrunningpb.Operation, error) {
	const routing, anyRouting = "single_cluster_routing", "multi_cluster_routing_use_any"
	fields := []string{"description", routing, anyRouting, "priority", "standard_isolation", "data_boost_isolation_read_only"}
	given := req.GetAppProfile()
	paths := []string{"description"}
	if req.GetUpdateMask() != nil {
		var err error
		if paths, err = maskPaths(req.GetUpdateMask(), fields...); err != nil {
			return nil, err
		}
	}
	if slices.Contains(paths, routing) && given.GetSingleClusterRouting() == nil || slices.Contains(paths, anyRouting) && given.GetMultiClusterRoutingUseAny() == nil {
		return nil, refusal.Invalid("app_profile", "the update mask names a routing policy that the profile does not set")
	}
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		p, err := appProfile(tx, given.GetName())
		if err != nil {
			return nil, err
		}
		if given.GetEtag() != "" && given.GetEtag() != p.GetEtag() {
			return nil, refusal.Aborted("App profile %s has changed: its etag is not %q.", p.GetName(), given.GetEtag())
		}
		copied := proto.CloneOf(given)
		if req.GetUpdateMask() == nil {
			p.RoutingPolicy, p.Isolation = copied.GetRoutingPolicy(), copied.GetIsolation()
		}
		if err := applyMask(p, copied, paths); err != nil {
			return nil, err
		}
		settleIsolation(p)
		if err := checkAppProfile(tx, p, req.GetIgnoreWarnings()); err != nil {
			return nil, err
		}
		if err := s.production(limits.CheckDescription(p)); err != nil {
			return nil, err
		}
		if err := record(tx, resname.First(p.GetName(), 4)); err != nil {
			return nil, err
		}
		if err := store(tx, kindAppProfile+p.GetName(), p); err != nil {
			return nil, err
		}
		return s.start(tx, resname.First(p.GetName(), 4), &btapb.UpdateAppProfileMetadata{}, p, s.now().Add(s.Delay))
	})
}

// DeleteAppProfile deletes an app profile. It always requires ignore_warnings:
// traffic by profile is not counted, so any profile may be in use.
func (s instanceAdminService) DeleteAppProfile(ctx context.Context, req *btapb.DeleteAppProfileRequest) (*emptypb.Empty, error) {
	return empty(s.change(ctx, func(tx *engine.CatalogTx) error {
		p, err := appProfile(tx, req.GetName())
		if err != nil {
			return err
		}
		if !req.GetIgnoreWarnings() {
			return refusal.Precondition("App profile %s may be in use; set ignore_warnings to delete it.", p.GetName())
		}
		if err := record(tx, resname.First(p.GetName(), 4)); err != nil {
			return err
		}
		return tx.DeleteResource(kindAppProfile + p.GetName())
	}))
}

// checkAppProfileID checks the id of a new app profile:
// [_a-zA-Z0-9][-_.a-zA-Z0-9]*, up to 50 characters.
func (s *Control) checkAppProfileID(id string) error {
	if !resname.IsResourceID(id) {
		return refusal.Invalid("app_profile_id", "%q is not an app profile id; expected [_a-zA-Z0-9][-_.a-zA-Z0-9]*", id)
	}
	return s.Limits.Check(len(id), limits.MaxAppProfileIDBytes, "app_profile_id", "characters")
}
