package admin

import (
	"context"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// The memory layer of a cluster is stored and returned, but serves no reads.

// storedMemoryLayer is a stored memory layer, which is ENABLING until its time.
type storedMemoryLayer = pending.Record[*btapb.MemoryLayer]

// memoryLayer returns the stored memory layer of a cluster, empty if it was never set.
func memoryLayer(r Catalog, c *btapb.Cluster) (*storedMemoryLayer, error) {
	m, _, err := loadRecord[btapb.MemoryLayer](r, kindMemoryLayer+memoryLayerName(c.GetName()))
	return m, refusal.Of(err)
}

// GetMemoryLayer returns the memory layer of a cluster. Every cluster has a memory layer, which may
// be disabled.
func (s instanceAdminService) GetMemoryLayer(ctx context.Context, req *btapb.GetMemoryLayerRequest) (*btapb.MemoryLayer, error) {
	name, err := memoryLayerCluster("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp, err := s.ListMemoryLayers(ctx, &btapb.ListMemoryLayersRequest{Parent: name})
	if err != nil {
		return nil, err
	}
	return resp.GetMemoryLayers()[0], nil
}

// UpdateMemoryLayer enables or disables the memory layer of a cluster.
func (s instanceAdminService) UpdateMemoryLayer(ctx context.Context, req *btapb.UpdateMemoryLayerRequest) (*longrunningpb.Operation, error) {
	if err := checkMemoryLayer(req); err != nil {
		return nil, err
	}
	name, err := memoryLayerCluster("memory_layer.name", req.GetMemoryLayer().GetName())
	if err != nil {
		return nil, err
	}
	now := s.now()
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		stored, err := cluster(tx, name)
		if err != nil {
			return nil, err
		}
		c := stored.Message
		m, err := memoryLayer(tx, c)
		if err != nil {
			return nil, err
		}
		if err := checkEtag(memoryLayerName(name), req.GetMemoryLayer().GetEtag(), memoryLayerAt(m, c, now).GetEtag()); err != nil {
			return nil, err
		}
		etag, err := newEtag(tx)
		if err != nil {
			return nil, err
		}
		doneAt := enableMemoryLayer(m, req.GetMemoryLayer(), etag, now, now.Add(s.Delay))
		if err := storeRecord(tx, kindMemoryLayer+m.Message.GetName(), m.Message, m.State); err != nil {
			return nil, err
		}
		metadata := &btapb.UpdateMemoryLayerMetadata{OriginalRequest: req, RequestTime: timestamppb.New(now), FinishTime: timestamppb.New(doneAt)}
		return s.start(tx, resname.First(name, 4), metadata, memoryLayerAt(m, c, doneAt), doneAt)
	})
}

// ListMemoryLayers returns the memory layers of a cluster, sorted by name, in
// pages. The cluster "-" selects all clusters of the instance.
func (s instanceAdminService) ListMemoryLayers(ctx context.Context, req *btapb.ListMemoryLayersRequest) (*btapb.ListMemoryLayersResponse, error) {
	resp, now := &btapb.ListMemoryLayersResponse{}, s.now()
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		clusters, err := clustersUnder(tx, req.GetParent())
		for _, c := range clusters {
			m, err := memoryLayer(tx, c)
			if err != nil {
				return err
			}
			resp.MemoryLayers = append(resp.MemoryLayers, memoryLayerAt(m, c, now))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.MemoryLayers, resp.NextPageToken, err = page(resp.GetMemoryLayers(), req.GetPageSize(), req.GetPageToken(), (*btapb.MemoryLayer).GetName)
	return resp, err
}

const (
	memoryLayerSuffix = "/memoryLayer"
	// memoryLayerUnsetEtag is the etag of a layer that was never set, and of no
	// other.
	memoryLayerUnsetEtag = "AAAAAAAAAAA="
	// gibPerNode is the size of a layer per node. The service's formula is not
	// documented; this number is invented.
	gibPerNode = 8
)

func memoryLayerName(cluster string) string { return cluster + memoryLayerSuffix }

// memoryLayerCluster returns the cluster whose layer a field names.
func memoryLayerCluster(field, name string) (string, error) {
	cluster, ok := strings.CutSuffix(name, memoryLayerSuffix)
	if !ok || !resname.HasShape(cluster, "projects", "instances", "clusters") {
		return "", refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/memoryLayer")
	}
	return cluster, nil
}

// checkMemoryLayer checks the update mask, and that a memory layer is set. Errors are statuses.
func checkMemoryLayer(req *btapb.UpdateMemoryLayerRequest) error {
	for _, path := range req.GetUpdateMask().GetPaths() {
		if path != "memory_config" {
			return refusal.Invalid("update_mask", "%q cannot be updated; expected memory_config", path)
		}
	}
	if req.GetMemoryLayer() == nil {
		return refusal.Invalid("memory_layer", "must be set")
	}
	return nil
}

// enableMemoryLayer applies from to a stored layer, whose message is empty if it was never set. A
// configuration turns the layer on at doneAt; without one, it is turned off. A layer that is on
// stays on. It returns the end of the operation.
func enableMemoryLayer(stored *storedMemoryLayer, from *btapb.MemoryLayer, etag string, now, doneAt time.Time) time.Time {
	m := stored.Message
	switch {
	case from.GetMemoryConfig() == nil:
		m.MemoryConfig, stored.At = nil, time.Time{}
		doneAt = now
	case m.GetMemoryConfig() == nil:
		m.MemoryConfig, stored.At = &btapb.MemoryLayer_MemoryConfig{}, doneAt
	case stored.Before(now): // already ENABLING
		doneAt = stored.At
	default:
		doneAt = now
	}
	m.Name, m.Etag = from.GetName(), etag
	return doneAt
}

// memoryLayerAt returns the memory layer of a cluster at a given time. It does not
// change stored, which is empty if the layer was never set.
func memoryLayerAt(stored *storedMemoryLayer, c *btapb.Cluster, now time.Time) *btapb.MemoryLayer {
	m := proto.CloneOf(stored.Message)
	m.Name = memoryLayerName(c.GetName())
	switch {
	case m.GetMemoryConfig() == nil:
		m.State = btapb.MemoryLayer_DISABLED
	case stored.Before(now):
		m.State = btapb.MemoryLayer_ENABLING
	default:
		m.State = btapb.MemoryLayer_READY
		m.MemoryConfig.StorageSizeGib = gibPerNode * c.GetServeNodes()
	}
	if m.GetEtag() == "" {
		m.Etag = memoryLayerUnsetEtag
	}
	return m
}
