package admin

import (
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/later"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// This file has the memory layer of a cluster, a setting that
// is kept and shown, and serves no reads.

const (
	suffix = "/memoryLayer"
	// unsetEtag is that of a layer that was never set. No layer that was has it.
	unsetEtag = "AAAAAAAAAAA="
	// gibPerNode is the size of a layer. The service computes it from what it
	// does not say; this is made up.
	gibPerNode = 8
)

// MemoryLayerName returns the name of the layer of a cluster.
func MemoryLayerName(cluster string) string { return cluster + suffix }

// MemoryLayerCluster returns the cluster whose layer a field names.
func MemoryLayerCluster(field, name string) (string, error) {
	cluster, ok := strings.CutSuffix(name, suffix)
	if !ok || !resname.HasShape(cluster, "projects", "instances", "clusters") {
		return "", refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/memoryLayer")
	}
	return cluster, nil
}

// CheckMemoryLayer checks that an update of a memory layer is possible. Errors: statuses.
func CheckMemoryLayer(req *btapb.UpdateMemoryLayerRequest) error {
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

// EnableMemoryLayer makes stored, an empty message for a layer that was never set, what from
// says: on from a time on if it has a configuration, and off if it has none. A layer
// that is on stays on. It returns when the operation is done.
func EnableMemoryLayer(stored, from *btapb.MemoryLayer, etag string, now, doneAt time.Time) time.Time {
	since := later.Take(stored)
	switch {
	case from.GetMemoryConfig() == nil:
		stored.MemoryConfig, since = nil, time.Time{}
		doneAt = now
	case stored.GetMemoryConfig() == nil:
		stored.MemoryConfig, since = &btapb.MemoryLayer_MemoryConfig{}, doneAt
	case since.After(now): // on its way already
		doneAt = since
	default:
		doneAt = now
	}
	stored.Name, stored.Etag = from.GetName(), etag
	later.Set(stored, since)
	return doneAt
}

// MemoryLayerAt returns the memory layer of a cluster at a time. It does not change stored,
// which is empty for a layer that was never set.
func MemoryLayerAt(stored *btapb.MemoryLayer, c *btapb.Cluster, now time.Time) *btapb.MemoryLayer {
	m := proto.CloneOf(stored)
	since := later.Take(m)
	m.Name = MemoryLayerName(c.GetName())
	switch {
	case m.GetMemoryConfig() == nil:
		m.State = btapb.MemoryLayer_DISABLED
	case since.After(now):
		m.State = btapb.MemoryLayer_ENABLING
	default:
		m.State = btapb.MemoryLayer_READY
		m.MemoryConfig.StorageSizeGib = gibPerNode * c.GetServeNodes()
	}
	if m.GetEtag() == "" {
		m.Etag = unsetEtag
	}
	return m
}
