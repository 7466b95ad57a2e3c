package admin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// Instances exist implicitly in a project until the first CreateInstance. An
// implicit instance exists as soon as a request names it, with one cluster and
// the default app profile. A change to it, such as an update of its cluster,
// records it. The first CreateInstance records the instances that hold tables;
// all others are NOT_FOUND from then on, even after the created ones were
// deleted.

// existence is the way in which an instance exists.
type existence uint8

const (
	absent existence = iota
	implicit
	recorded
)

// instanceExists returns how an instance exists, and loads a recorded one.
func instanceExists(r Catalog, name string) (*instancedef.StoredInstance, existence, error) {
	in, found, err := loadRecord[btapb.Instance](r, kindInstance+name)
	if err != nil || found {
		return in, recorded, err
	}
	_, err = r.Resource(kindProject + resname.First(name, 2))
	if errors.Is(err, engine.ErrResourceNotFound) {
		return in, implicit, nil
	}
	return in, absent, err
}

// instance returns an implicit or recorded instance in its final state.
func instance(r Catalog, name string) (*btapb.Instance, existence, error) {
	in, how, err := storedInstance(r, name)
	if err != nil {
		return nil, how, err
	}
	return in.Message, how, nil
}

// storedInstance returns an implicit instance, or a recorded one as it is stored; NOT_FOUND for
// an absent one.
func storedInstance(r Catalog, name string) (*instancedef.StoredInstance, existence, error) {
	in, how, err := instanceExists(r, name)
	switch {
	case err != nil:
		return nil, absent, refusal.Of(err)
	case how == absent:
		return nil, absent, refusal.NotFound("Instance", name)
	case how == implicit:
		in.Message = &btapb.Instance{
			Name:        name,
			DisplayName: resname.Last(name),
			State:       btapb.Instance_READY,
			Type:        btapb.Instance_PRODUCTION,
			Edition:     btapb.Instance_ENTERPRISE,
			// The API returns this for instances older than the field.
			CreateTime: &timestamppb.Timestamp{Nanos: 1},
		}
	}
	return in, how, nil
}

// CheckInstance returns an error if the instance does not exist.
func CheckInstance(r Catalog, name string) error {
	_, _, err := instance(r, name)
	return err
}

// record stores an implicit instance with its clusters and its default app
// profile.
func record(tx *engine.CatalogTx, name string) error {
	in, how, err := instance(tx, name)
	if err != nil || how == recorded {
		return err
	}
	cluster := implicitClusterOf(name, instancedef.ImplicitCluster)
	for _, b := range tx.Backups(name + "/clusters/") { // backups may be in other clusters
		c := implicitClusterOf(name, resname.Last(resname.First(b.Name, 6)))
		if err := storeRecord(tx, kindCluster+c.GetName(), c, pending.State{}); err != nil {
			return err
		}
	}
	return errors.Join(
		storeRecord(tx, kindInstance+name, in, pending.State{}),
		storeRecord(tx, kindCluster+cluster.GetName(), cluster, pending.State{}),
		store(tx, kindAppProfile+name+"/appProfiles/"+DefaultAppProfile, implicitAppProfile(name, []*btapb.Cluster{cluster})),
	)
}

// recordHolders records the instances of a project that hold tables or backups.
func recordHolders(tx *engine.CatalogTx, project string) error {
	var held []string
	for _, t := range tx.Tables(project + "/instances/") {
		held = append(held, t.Name)
	}
	for _, b := range tx.Backups(project + "/instances/") {
		held = append(held, b.Name)
	}
	last := ""
	for _, h := range held {
		if name := resname.First(h, 4); name != last {
			last = name
			if err := record(tx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// CreateInstance creates an instance with its clusters and the default app profile. With one
// cluster, the profile routes to it and allows single-row transactions. With several clusters, it
// routes to any of them and rejects single-row transactions.
func (s instanceAdminService) CreateInstance(ctx context.Context, req *btapb.CreateInstanceRequest) (*longrunningpb.Operation, error) {
	if !resname.HasShape(req.GetParent(), "projects") {
		return nil, refusal.BadName("parent", req.GetParent(), "projects/PROJECT")
	}
	if err := s.checkInstanceID(req.GetInstanceId()); err != nil {
		return nil, err
	}
	if req.GetInstance() == nil {
		return nil, refusal.Invalid("instance", "must be set")
	}
	began, doneAt := s.span()
	name := req.GetParent() + "/instances/" + req.GetInstanceId()
	in := &btapb.Instance{
		Name:        name,
		DisplayName: req.GetInstance().GetDisplayName(),
		State:       btapb.Instance_READY,
		Type:        req.GetInstance().GetType(),
		Edition:     req.GetInstance().GetEdition(),
		Labels:      maps.Clone(req.GetInstance().GetLabels()),
		CreateTime:  began,
		// Tags are input only.
	}
	if in.GetDisplayName() == "" {
		in.DisplayName = req.GetInstanceId()
	}
	if in.GetType() == btapb.Instance_TYPE_UNSPECIFIED {
		in.Type = btapb.Instance_PRODUCTION
	}
	if in.GetEdition() == btapb.Instance_EDITION_UNSPECIFIED {
		in.Edition = btapb.Instance_ENTERPRISE
	}
	if err := instancedef.Check(in, s.Limits); err != nil {
		return nil, err
	}
	if err := s.production(limits.CheckDisplayName(in)); err != nil {
		return nil, err
	}
	ids := slices.Sorted(maps.Keys(req.GetClusters()))
	if len(ids) == 0 {
		return nil, refusal.Invalid("clusters", "must specify at least one cluster")
	}
	if in.GetType() == btapb.Instance_DEVELOPMENT && len(ids) > 1 {
		return nil, refusal.Invalid("clusters", "an instance of type DEVELOPMENT must have exactly one cluster")
	}
	var clusters []*btapb.Cluster
	for _, id := range ids {
		if err := s.production(limits.CheckProductionCluster("clusters["+id+"]", id, req.GetClusters()[id])); err != nil {
			return nil, err
		}
		c, err := instancedef.NewCluster("clusters["+id+"]", name, id, req.GetClusters()[id], in, clusters)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
	}
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		var err error
		if _, err = tx.Resource(kindInstance + name); err == nil {
			return nil, refusal.Exists("Instance", name)
		} else if !errors.Is(err, engine.ErrResourceNotFound) {
			return nil, err
		}
		_, err = tx.Resource(kindProject + req.GetParent())
		if errors.Is(err, engine.ErrResourceNotFound) {
			if len(tx.Tables(resname.TablesOf(name))) > 0 || len(tx.Backups(name+"/clusters/")) > 0 {
				// It exists, since it holds tables or backups.
				return nil, refusal.Exists("Instance", name)
			}
			err = errors.Join(recordHolders(tx, req.GetParent()), tx.PutResource(kindProject+req.GetParent(), nil))
		}
		if err != nil {
			return nil, err
		}
		// The new instance does not inherit resources of the implicit one.
		if err := errors.Join(forget(tx, name), storeRecord(tx, kindInstance+name, in, s.until(doneAt.AsTime()))); err != nil {
			return nil, err
		}
		for _, c := range clusters {
			if err := storeRecord(tx, kindCluster+c.GetName(), c, s.until(doneAt.AsTime())); err != nil {
				return nil, err
			}
		}
		if err := store(tx, kindAppProfile+name+"/appProfiles/"+DefaultAppProfile, implicitAppProfile(name, clusters)); err != nil {
			return nil, err
		}
		return s.start(tx, name, &btapb.CreateInstanceMetadata{OriginalRequest: req, RequestTime: began, FinishTime: doneAt}, in, doneAt.AsTime())
	})
}

// forget removes the resources of an instance except for its tables. It removes
// deleted tables too, so that UndeleteTable cannot restore them in a later
// instance of the same name.
func forget(tx *engine.CatalogTx, name string) error {
	if err := tx.PurgeTables(resname.TablesOf(name)); err != nil {
		return err
	}
	return removeAll(tx, name)
}

// GetInstance returns an instance.
func (s instanceAdminService) GetInstance(_ context.Context, req *btapb.GetInstanceRequest) (*btapb.Instance, error) {
	if err := resname.CheckInstance("name", req.GetName()); err != nil {
		return nil, err
	}
	in, _, err := storedInstance(s.DB, req.GetName())
	if err != nil {
		return nil, err
	}
	return instancedef.InstanceAt(in, s.now()), nil
}

// ListInstances returns the instances of a project, sorted by name: the created instances, and the
// implicit instances that hold tables. It omits implicit instances whose id CreateInstance would
// reject, because clients fail on such ids.
func (s instanceAdminService) ListInstances(ctx context.Context, req *btapb.ListInstancesRequest) (*btapb.ListInstancesResponse, error) {
	if !resname.HasShape(req.GetParent(), "projects") {
		return nil, refusal.BadName("parent", req.GetParent(), "projects/PROJECT")
	}
	resp := &btapb.ListInstancesResponse{}
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		names, err := instanceNames(tx, req.GetParent())
		if err != nil {
			return err
		}
		for _, name := range names {
			in, how, err := storedInstance(tx, name)
			if err != nil {
				return err
			}
			if how == recorded || s.checkInstanceID(resname.Last(name)) == nil {
				resp.Instances = append(resp.Instances, instancedef.InstanceAt(in, s.now()))
			}
		}
		resp.FailedLocations, err = s.failedLocations(tx, names)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// instanceNames returns the names of a project's instances, sorted.
func instanceNames(r Catalog, project string) ([]string, error) {
	stored, err := loadRecords[btapb.Instance](r, kindInstance, project+"/instances/")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, in := range stored {
		names[in.Message.GetName()] = true
	}
	if _, err := r.Resource(kindProject + project); errors.Is(err, engine.ErrResourceNotFound) {
		for _, t := range r.Tables(project + "/instances/") {
			names[resname.First(t.Name, 4)] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// UpdateInstance replaces the display name and the type of an instance.
func (s instanceAdminService) UpdateInstance(ctx context.Context, req *btapb.Instance) (*btapb.Instance, error) {
	return s.updateInstance(ctx, req, s.now(), []string{"display_name", "type"}, func(*engine.CatalogTx, *btapb.Instance) error { return nil })
}

// PartialUpdateInstance replaces the fields of an instance that the mask names:
// display_name, type, edition, labels.
func (s instanceAdminService) PartialUpdateInstance(ctx context.Context, req *btapb.PartialUpdateInstanceRequest) (*longrunningpb.Operation, error) {
	paths, err := maskPaths(req.GetUpdateMask(), "display_name", "type", "edition", "labels")
	if err != nil {
		return nil, err
	}
	began, doneAt := s.span()
	var op *longrunningpb.Operation
	_, err = s.updateInstance(ctx, req.GetInstance(), doneAt.AsTime(), paths, func(tx *engine.CatalogTx, in *btapb.Instance) error {
		var err error
		op, err = s.start(tx, in.GetName(), &btapb.UpdateInstanceMetadata{OriginalRequest: req, RequestTime: began, FinishTime: doneAt}, in, doneAt.AsTime())
		return err
	})
	return op, err
}

// updateInstance copies the fields at paths from `from` to the instance that from names. It calls
// done inside the change, with the instance in its state at time at.
func (s *Control) updateInstance(ctx context.Context, from *btapb.Instance, at time.Time, paths []string, done func(*engine.CatalogTx, *btapb.Instance) error) (*btapb.Instance, error) {
	if err := resname.CheckInstance("name", from.GetName()); err != nil {
		return nil, err
	}
	var in *btapb.Instance
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := record(tx, from.GetName()); err != nil {
			return err
		}
		stored, _, err := storedInstance(tx, from.GetName())
		if err != nil {
			return err
		}
		in = stored.Message
		was := in.GetType()
		if err := applyMask(in, proto.Clone(from), paths); err != nil {
			return err
		}
		if in.GetType() == btapb.Instance_TYPE_UNSPECIFIED {
			in.Type = was
		}
		if in.GetEdition() == btapb.Instance_EDITION_UNSPECIFIED {
			in.Edition = btapb.Instance_ENTERPRISE
		}
		if err := instancedef.Check(in, s.Limits); err != nil {
			return err
		}
		if err := s.production(limits.CheckDisplayName(in)); err != nil {
			return err
		}
		if was == btapb.Instance_PRODUCTION && in.GetType() == btapb.Instance_DEVELOPMENT {
			return refusal.Precondition("Instance %s is of type PRODUCTION and cannot become DEVELOPMENT.", in.GetName())
		}
		if err := storeRecord(tx, kindInstance+in.GetName(), in, stored.State); err != nil {
			return err
		}
		return done(tx, instancedef.InstanceAt(stored, at))
	})
	if err != nil {
		return nil, err
	}
	return in, nil
}

// DeleteInstance deletes an instance with its clusters, app profiles, tables and policies; the
// tables cannot be undeleted. It fails if the instance has a backup, or a table or view with
// deletion_protection.
func (s instanceAdminService) DeleteInstance(ctx context.Context, req *btapb.DeleteInstanceRequest) (*emptypb.Empty, error) {
	name := req.GetName()
	if err := resname.CheckInstance("name", name); err != nil {
		return nil, err
	}
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := CheckInstance(tx, name); err != nil {
			return err
		}
		tables := tx.Tables(resname.TablesOf(name))
		for _, t := range tables {
			if protected(t) {
				return refusal.Protected(t.Name, "DeleteInstance")
			}
		}
		for _, t := range tables {
			if err := checkNoStream(t, "DeleteInstance"); err != nil {
				return err
			}
		}
		if err := checkUnprotectedViews(tx, resname.TablesOf(name), "DeleteInstance"); err != nil {
			return err
		}
		if err := s.checkNoBackups(tx, "Instance", name, name+"/clusters/"); err != nil {
			return err
		}
		if err := s.deleteMaterializedViews(tx, name); err != nil {
			return err
		}
		for _, t := range tables {
			if err := tx.DeleteTable(t.Name); err != nil {
				return err
			}
		}
		return errors.Join(forget(tx, name), remove(tx, kindInstance+name))
	})
	if err != nil {
		return nil, err
	}
	s.Replication.Forget(req.GetName(), "")
	return &emptypb.Empty{}, nil
}

// checkInstanceID checks the id of a new instance: [a-z][-a-z0-9]*, up to 33
// characters. The minimum is one character, as in the clients, and higher with
// ProductionLimits.
func (s *Control) checkInstanceID(id string) error {
	if !resname.IsLowerID(id) {
		return refusal.Invalid("instance_id", "%q is not an instance id; expected [a-z][-a-z0-9]*", id)
	}
	if err := s.production(limits.CheckProductionID("instance_id", id, limits.MinInstanceIDBytes, limits.MaxInstanceIDBytes)); err != nil {
		return err
	}
	return s.Limits.Check(len(id), limits.MaxInstanceIDBytes, "instance_id", "characters")
}
