package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

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

// Clusters are records only: this process serves all tables, regardless of the
// clusters of their instance. An implicit instance has one cluster, and every
// other cluster exists as soon as a request names it.

// implicitClusterOf returns an implicit cluster, which was never created.
func implicitClusterOf(instance, id string) *btapb.Cluster {
	return &btapb.Cluster{
		Name:               instance + "/clusters/" + id,
		Location:           resname.First(instance, 2) + "/locations/" + instancedef.ImplicitZone,
		State:              btapb.Cluster_READY,
		ServeNodes:         1,
		DefaultStorageType: btapb.StorageType_SSD,
	}
}

// ClustersOf returns the messages of the stored clusters of an instance, sorted by name; see
// StoredClusters.
func ClustersOf(r Catalog, name string) ([]*btapb.Cluster, error) {
	stored, err := StoredClusters(r, name)
	return messagesOf(stored), err
}

// StoredClusters returns the stored clusters of an instance, sorted by name. An implicit instance
// has one implicit cluster.
func StoredClusters(r Catalog, name string) ([]*instancedef.StoredCluster, error) {
	_, how, err := instance(r, name)
	if err != nil {
		return nil, err
	}
	if how == implicit {
		return []*instancedef.StoredCluster{{Message: implicitClusterOf(name, instancedef.ImplicitCluster)}}, nil
	}
	clusters, err := loadRecords[btapb.Cluster](r, kindCluster, name+"/clusters/")
	return clusters, refusal.Of(err)
}

// cluster returns the stored cluster with the given name; see instancedef.ClusterAt.
func cluster(r Catalog, name string) (*instancedef.StoredCluster, error) {
	if err := resname.CheckCluster("name", name); err != nil {
		return nil, err
	}
	parent := resname.First(name, 4)
	_, how, err := instance(r, parent)
	if err != nil {
		return nil, err
	}
	if how == implicit {
		return &instancedef.StoredCluster{Message: implicitClusterOf(parent, resname.Last(name))}, nil
	}
	return findRecord[btapb.Cluster](r, kindCluster, "Cluster", name)
}

// CreateCluster adds a cluster to an instance. The cluster is CREATING for Control.Delay, and then
// starts with the data that another cluster sees.
func (s instanceAdminService) CreateCluster(ctx context.Context, req *btapb.CreateClusterRequest) (*longrunningpb.Operation, error) {
	if err := resname.CheckInstance("parent", req.GetParent()); err != nil {
		return nil, err
	}
	if req.GetCluster() == nil {
		return nil, refusal.Invalid("cluster", "must be set")
	}
	began, doneAt := s.span()
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		if err := record(tx, req.GetParent()); err != nil {
			return nil, err
		}
		in, _, err := instance(tx, req.GetParent())
		if err != nil {
			return nil, err
		}
		stored, err := StoredClusters(tx, req.GetParent())
		if err != nil {
			return nil, err
		}
		clusters := messagesOf(stored)
		for _, o := range clusters {
			if resname.Last(o.GetName()) == req.GetClusterId() {
				return nil, refusal.Exists("Cluster", o.GetName())
			}
		}
		if in.GetType() == btapb.Instance_DEVELOPMENT {
			return nil, refusal.Precondition("Instance %s is of type DEVELOPMENT and can have only one cluster.", in.GetName())
		}
		if err := s.production(limits.CheckProductionCluster("cluster", req.GetClusterId(), req.GetCluster())); err != nil {
			return nil, err
		}
		c, err := instancedef.NewCluster("cluster", req.GetParent(), req.GetClusterId(), req.GetCluster(), in, clusters)
		if err != nil {
			return nil, err
		}
		metadata := &btapb.CreateClusterMetadata{OriginalRequest: req, RequestTime: began, FinishTime: doneAt}
		for _, t := range tx.Tables(resname.TablesOf(req.GetParent())) {
			if metadata.GetTables() == nil {
				metadata.Tables = map[string]*btapb.CreateClusterMetadata_TableProgress{}
			}
			metadata.Tables[t.Name] = &btapb.CreateClusterMetadata_TableProgress{State: btapb.CreateClusterMetadata_TableProgress_COMPLETED}
		}
		state := s.until(doneAt.AsTime())
		state.Note = s.Replication.Fill(c, stored, doneAt.AsTime())
		if err := storeRecord(tx, kindCluster+c.GetName(), c, state); err != nil {
			return nil, err
		}
		if c.GetClusterConfig() != nil {
			c.ServeNodes = 0 // the operation does not report the nodes
		}
		return s.start(tx, req.GetParent(), metadata, c, doneAt.AsTime())
	})
}

// GetCluster returns a cluster.
func (s instanceAdminService) GetCluster(_ context.Context, req *btapb.GetClusterRequest) (*btapb.Cluster, error) {
	c, err := cluster(s.DB, req.GetName())
	if err != nil {
		return nil, err
	}
	return instancedef.ClusterAt(c, s.now()), nil
}

// shownClusters returns the clusters of an instance as of a time, sorted by
// name.
func shownClusters(r Catalog, instance string, now time.Time) ([]*btapb.Cluster, error) {
	stored, err := StoredClusters(r, instance)
	clusters := make([]*btapb.Cluster, len(stored))
	for i, c := range stored {
		clusters[i] = instancedef.ClusterAt(c, now)
	}
	return clusters, err
}

// ListClusters returns the clusters of an instance, sorted by name. The
// instance "-" selects all instances that ListInstances returns for the
// project.
func (s instanceAdminService) ListClusters(ctx context.Context, req *btapb.ListClustersRequest) (*btapb.ListClustersResponse, error) {
	resp, now := &btapb.ListClustersResponse{}, s.now()
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		names, err := parents(tx, req.GetParent())
		if err != nil {
			return err
		}
		for _, name := range names {
			clusters, err := shownClusters(tx, name, now)
			if err != nil {
				return err
			}
			resp.Clusters = append(resp.Clusters, clusters...)
		}
		resp.FailedLocations, err = s.failedLocations(tx, names)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// failedLocations returns the sorted locations of the failed clusters of
// instances. Lists include their resources nevertheless, since the admin API
// does not fail.
func (s *Control) failedLocations(r Catalog, instances []string) (names []string, err error) {
	for _, instance := range instances {
		view := s.Replication.View(instance)
		if view == nil {
			continue
		}
		clusters, err := ClustersOf(r, instance)
		if err != nil {
			return nil, err
		}
		for _, c := range clusters {
			if view.Failed(resname.Last(c.GetName())) {
				names = append(names, c.GetLocation())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// parents returns the instances that the parent of a list selects.
func parents(r Catalog, parent string) ([]string, error) {
	if err := resname.CheckInstance("parent", parent); err != nil {
		return nil, err
	}
	project, ok := strings.CutSuffix(parent, "/instances/-")
	if !ok {
		return []string{parent}, nil
	}
	names, err := instanceNames(r, project)
	return names, refusal.Of(err)
}

// UpdateCluster sets the number of nodes of a cluster. It ignores the number while autoscaling is
// on; only PartialUpdateCluster can change autoscaling.
func (s instanceAdminService) UpdateCluster(ctx context.Context, req *btapb.Cluster) (*longrunningpb.Operation, error) {
	began, doneAt := s.span()
	return s.updateCluster(ctx, req, doneAt.AsTime(), func(c *btapb.Cluster) error {
		if given := req.GetClusterConfig(); given != nil && !proto.Equal(given, c.GetClusterConfig()) {
			return refusal.Invalid("cluster.cluster_config", "cannot be changed by UpdateCluster; use PartialUpdateCluster")
		}
		if c.GetClusterConfig() == nil {
			c.ServeNodes = req.GetServeNodes()
		}
		return nil
	}, &btapb.UpdateClusterMetadata{OriginalRequest: req, RequestTime: began, FinishTime: doneAt})
}

// PartialUpdateCluster replaces the fields of a cluster that the mask names: serve_nodes and fields
// of cluster_config. While autoscaling is on, serve_nodes keeps its value. To end autoscaling,
// clear the autoscaling configuration and set serve_nodes in one request.
func (s instanceAdminService) PartialUpdateCluster(ctx context.Context, req *btapb.PartialUpdateClusterRequest) (*longrunningpb.Operation, error) {
	paths, err := maskPaths(req.GetUpdateMask(), "serve_nodes", "cluster_config")
	if err != nil {
		return nil, err
	}
	given := req.GetCluster()
	scaling := fieldsUnder(paths, "cluster_config")
	if slices.Contains(paths, "serve_nodes") && scaling && given.GetServeNodes() != 0 && given.GetClusterConfig().GetClusterAutoscalingConfig() != nil {
		return nil, refusal.Invalid("cluster", "exactly one of serve_nodes and cluster_config.cluster_autoscaling_config can be set")
	}
	began, doneAt := s.span()
	return s.updateCluster(ctx, given, doneAt.AsTime(), func(c *btapb.Cluster) error {
		nodes, scaled := c.GetServeNodes(), c.GetClusterConfig() != nil
		if err := applyMask(c, proto.Clone(given), paths); err != nil {
			return err
		}
		if c.GetClusterConfig().GetClusterAutoscalingConfig() == nil {
			c.Config = nil
			if scaled && (!slices.Contains(paths, "serve_nodes") || c.GetServeNodes() == 0) {
				return refusal.Invalid("update_mask", "must include serve_nodes to end autoscaling, and cluster.serve_nodes must be set")
			}
			return nil
		}
		c.ServeNodes = nodes
		return nil
	}, &btapb.PartialUpdateClusterMetadata{OriginalRequest: req, RequestTime: began, FinishTime: doneAt})
}

// updateCluster applies change to the cluster that from names. The cluster is RESIZING until
// doneAt if its number of nodes changes.
func (s *Control) updateCluster(ctx context.Context, from *btapb.Cluster, doneAt time.Time, change func(*btapb.Cluster) error, metadata proto.Message) (*longrunningpb.Operation, error) {
	if err := resname.CheckCluster("cluster.name", from.GetName()); err != nil {
		return nil, err
	}
	parent := resname.First(from.GetName(), 4)
	return changed(ctx, s, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		stored, err := cluster(tx, from.GetName())
		if err != nil {
			return nil, err
		}
		c := stored.Message
		if err := record(tx, parent); err != nil {
			return nil, err
		}
		nodes := c.GetServeNodes()
		if err := change(c); err != nil {
			return nil, err
		}
		if err := instancedef.SettleNodes("cluster", c); err != nil {
			return nil, err
		}
		if c.GetServeNodes() != nodes {
			instancedef.Resize(stored, s.now(), doneAt)
		}
		if err := storeRecord(tx, kindCluster+c.GetName(), c, stored.State); err != nil {
			return nil, err
		}
		return s.start(tx, parent, metadata, instancedef.ClusterAt(stored, doneAt), doneAt)
	})
}

// DeleteCluster removes a cluster from an instance. It returns an error if the
// cluster is the last one, holds a backup or is the target of an app profile.
func (s instanceAdminService) DeleteCluster(ctx context.Context, req *btapb.DeleteClusterRequest) (*emptypb.Empty, error) {
	left := s.Rows.Leaving(resname.First(req.GetName(), 4), resname.Last(req.GetName()))
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		stored, err := cluster(tx, req.GetName())
		if err != nil {
			return err
		}
		c := stored.Message
		parent := resname.First(c.GetName(), 4)
		clusters, err := ClustersOf(tx, parent)
		if err != nil {
			return err
		}
		if len(clusters) < 2 {
			return refusal.Precondition("Cluster %s is the last cluster of its instance and cannot be deleted.", c.GetName())
		}
		profiles, err := appProfilesOf(tx, parent)
		if err != nil {
			return err
		}
		id := resname.Last(c.GetName())
		for _, p := range profiles {
			if slices.Contains(routesTo(p), id) {
				return refusal.Precondition("Cluster %s cannot be deleted: app profile %s routes to it.", c.GetName(), resname.Last(p.GetName()))
			}
		}
		if err := s.checkNoBackups(tx, "Cluster", c.GetName(), c.GetName()+"/"); err != nil {
			return err
		}
		if err := remove(tx, kindMemoryLayer+memoryLayerName(c.GetName())); err != nil {
			return err
		}
		return tx.DeleteResource(kindCluster + c.GetName())
	})
	if lost := left(ctx, err == nil); err == nil {
		// No journal records which changes were lost with the cluster, so views are filled again.
		err = refusal.Of(cmp.Or(lost, s.Views.Reset(ctx, resname.First(req.GetName(), 4))))
	}
	if err != nil {
		return nil, err
	}
	s.Replication.Forget(resname.First(req.GetName(), 4), resname.Last(req.GetName()))
	return &emptypb.Empty{}, nil
}
