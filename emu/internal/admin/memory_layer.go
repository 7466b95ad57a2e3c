package admin

import (
	"context"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// memoryLayer returns the stored memory layer of a cluster, empty if it was never set.
func memoryLayer(r Catalog, c *btapb.Cluster) (*btapb.MemoryLayer, error) {
	m := &btapb.MemoryLayer{}
	_, err := loadOne(r, KindMemoryLayer+MemoryLayerName(c.GetName()), m)
	return m, refusal.Of(err)
}

// GetMemoryLayer returns the memory layer of a cluster. Each cluster has a memory layer,
// which may be disabled.
func (s instanceAdminService) GetMemoryLayer(ctx context.Context, req *btapb.GetMemoryLayerRequest) (*btapb.MemoryLayer, error) {
	name, err := MemoryLayerCluster("name", req.GetName())
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
	if err := CheckMemoryLayer(req); err != nil {
		return nil, err
	}
	name, err := MemoryLayerCluster("memory_layer.name", req.GetMemoryLayer().GetName())
	if err != nil {
		return nil, err
	}
	now := s.now()
	var op *longrunningpb.Operation
	err = s.change(ctx, func(tx *engine.CatalogTx) error {
		c, err := cluster(tx, name)
		if err != nil {
			return err
		}
		m, err := memoryLayer(tx, c)
		if err != nil {
			return err
		}
		if err := checkEtag(MemoryLayerName(name), req.GetMemoryLayer().GetEtag(), MemoryLayerAt(m, c, now).GetEtag()); err != nil {
			return err
		}
		etag, err := newEtag(tx)
		if err != nil {
			return err
		}
		doneAt := EnableMemoryLayer(m, req.GetMemoryLayer(), etag, now, now.Add(s.Delay))
		if err := store(tx, KindMemoryLayer+m.GetName(), m); err != nil {
			return err
		}
		metadata := &btapb.UpdateMemoryLayerMetadata{OriginalRequest: req, RequestTime: timestamppb.New(now), FinishTime: timestamppb.New(doneAt)}
		op, err = s.start(tx, resname.First(name, 4), metadata, MemoryLayerAt(m, c, doneAt), doneAt)
		return err
	})
	return op, err
}

// ListMemoryLayers returns the memory layer of a cluster or, with the cluster "-", the
// memory layers of all clusters of an instance, sorted by name, in pages.
func (s instanceAdminService) ListMemoryLayers(ctx context.Context, req *btapb.ListMemoryLayersRequest) (*btapb.ListMemoryLayersResponse, error) {
	resp, now := &btapb.ListMemoryLayersResponse{}, s.now()
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		clusters, err := clustersUnder(tx, req.GetParent())
		for _, c := range clusters {
			m, err := memoryLayer(tx, c)
			if err != nil {
				return err
			}
			resp.MemoryLayers = append(resp.MemoryLayers, MemoryLayerAt(m, c, now))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.MemoryLayers, resp.NextPageToken, err = page(resp.GetMemoryLayers(), req.GetPageSize(), req.GetPageToken(), (*btapb.MemoryLayer).GetName)
	return resp, err
}
