package instancedef

import (
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// The ranges of a cluster's settings. Values outside them have no meaning.
const (
	minAutoscalingCPUPercent = 10 // AutoscalingTargets
	maxAutoscalingCPUPercent = 80
	minAutoscalingSSDGiB     = 2_560 // AutoscalingTargets, per node
	maxAutoscalingSSDGiB     = 5_120
	minAutoscalingHDDGiB     = 8_192
	maxAutoscalingHDDGiB     = 16_384
	maxAutoscalingRatio      = 10 // https://cloud.google.com/bigtable/docs/autoscaling: maximum to minimum nodes
)

// NewCluster completes and checks the definition of a new cluster of the instance in, whose
// existing clusters are others. Its errors are statuses of package refusal about field.
func NewCluster(field, instance, id string, from *btapb.Cluster, in *btapb.Instance, others []*btapb.Cluster) (*btapb.Cluster, error) {
	if !resname.IsLowerID(id) {
		return nil, refusal.Invalid(field, "%q is not a cluster id; expected [a-z][-a-z0-9]*", id)
	}
	if !resname.HasShape(from.GetLocation(), "projects", "locations") {
		return nil, refusal.BadName(field+".location", from.GetLocation(), "projects/PROJECT/locations/ZONE")
	}
	for _, o := range others {
		if o.GetLocation() == from.GetLocation() {
			return nil, refusal.Invalid(field+".location", "cluster %s is already in %s; the clusters of an instance must be in different zones", resname.Last(o.GetName()), from.GetLocation())
		}
	}
	c := &btapb.Cluster{
		Name:               instance + "/clusters/" + id,
		Location:           from.GetLocation(),
		State:              btapb.Cluster_READY,
		ServeNodes:         from.GetServeNodes(),
		NodeScalingFactor:  from.GetNodeScalingFactor(),
		DefaultStorageType: from.GetDefaultStorageType(),
	}
	if key := from.GetEncryptionConfig().GetKmsKeyName(); key != "" {
		if keyRegion(key) != RegionOf(resname.Last(c.GetLocation())) {
			return nil, refusal.KeyOfAnotherRegion(field, key, c.GetLocation())
		}
		c.EncryptionConfig = &btapb.Cluster_EncryptionConfig{KmsKeyName: key}
	}
	if len(others) > 0 && (others[0].GetEncryptionConfig() == nil) != (c.GetEncryptionConfig() == nil) {
		return nil, refusal.Precondition("Either all clusters of an instance must have a Cloud KMS key, or none; %s differs from %s.", id, others[0].GetName())
	}
	if a := from.GetClusterConfig().GetClusterAutoscalingConfig(); a != nil {
		if from.GetServeNodes() != 0 {
			return nil, refusal.Invalid(field, "exactly one of serve_nodes and cluster_config.cluster_autoscaling_config can be set")
		}
		c.Config = autoscaling(a)
	}
	switch c.GetDefaultStorageType() {
	case btapb.StorageType_STORAGE_TYPE_UNSPECIFIED:
		c.DefaultStorageType = btapb.StorageType_SSD
	case btapb.StorageType_SSD, btapb.StorageType_HDD:
	default:
		return nil, refusal.Invalid(field+".default_storage_type", "%d is not a known storage type", c.GetDefaultStorageType())
	}
	if _, ok := btapb.Cluster_NodeScalingFactor_name[int32(c.GetNodeScalingFactor())]; !ok {
		return nil, refusal.Invalid(field+".node_scaling_factor", "%d is not a known scaling factor", c.GetNodeScalingFactor())
	}
	if in.GetType() == btapb.Instance_DEVELOPMENT {
		if c.GetServeNodes() != 0 || c.GetClusterConfig() != nil {
			return nil, refusal.Invalid(field+".serve_nodes", "neither serve_nodes nor autoscaling may be set for an instance of type DEVELOPMENT")
		}
		c.ServeNodes = 1
		return c, nil
	}
	if err := SettleNodes(field, c); err != nil {
		return nil, err
	}
	if a := c.GetClusterConfig().GetClusterAutoscalingConfig(); a != nil {
		c.ServeNodes = a.GetAutoscalingLimits().GetMinServeNodes()
	}
	return c, nil
}

// RegionOf returns the region of a zone, such as us-east1 for us-east1-b.
func RegionOf(zone string) string {
	if n := strings.LastIndexByte(zone, '-'); n > 0 {
		return zone[:n]
	}
	return zone
}

// keyRegion returns the location of a Cloud KMS key, "" if key is malformed.
func keyRegion(key string) string {
	location, _, _ := strings.Cut(key, "/keyRings/")
	if !resname.HasShape(key, "projects", "locations", "keyRings", "cryptoKeys") {
		return ""
	}
	return resname.Last(location)
}

// autoscaling wraps a copy of a as cluster configuration.
func autoscaling(a *btapb.Cluster_ClusterAutoscalingConfig) *btapb.Cluster_ClusterConfig_ {
	return &btapb.Cluster_ClusterConfig_{ClusterConfig: &btapb.Cluster_ClusterConfig{
		ClusterAutoscalingConfig: proto.CloneOf(a),
	}}
}

// SettleNodes checks the node count or the autoscaling of a cluster, and fills in defaults. If
// neither is set, "Cloud Bigtable automatically allocates nodes" (Cluster.serve_nodes); Tabletop
// sets the minimum.
func SettleNodes(field string, c *btapb.Cluster) error {
	step := int32(1)
	if c.GetNodeScalingFactor() == btapb.Cluster_NODE_SCALING_FACTOR_2X {
		step = 2
	}
	count := func(field string, n int32) error {
		if n < 1 {
			return refusal.Invalid(field, "%d nodes; expected at least 1", n)
		}
		if n%step != 0 {
			return refusal.Invalid(field, "%d is not a multiple of %d, which the node scaling factor requires", n, step)
		}
		return nil
	}
	if c.GetClusterConfig() == nil {
		if c.GetServeNodes() == 0 {
			c.ServeNodes = step
		}
		return count(field+".serve_nodes", c.GetServeNodes())
	}
	field += ".cluster_config.cluster_autoscaling_config"
	a := c.GetClusterConfig().GetClusterAutoscalingConfig()
	if a.GetAutoscalingLimits() == nil || a.GetAutoscalingTargets() == nil {
		return refusal.Invalid(field, "autoscaling_limits and autoscaling_targets must be set")
	}
	least, most := a.GetAutoscalingLimits().GetMinServeNodes(), a.GetAutoscalingLimits().GetMaxServeNodes()
	if err := count(field+".autoscaling_limits.min_serve_nodes", least); err != nil {
		return err
	}
	if err := count(field+".autoscaling_limits.max_serve_nodes", most); err != nil {
		return err
	}
	if most < least || int64(most) > maxAutoscalingRatio*int64(least) {
		return refusal.Invalid(field+".autoscaling_limits", "max_serve_nodes %d is not between min_serve_nodes %d and %d times that", most, least, maxAutoscalingRatio)
	}
	targets := a.GetAutoscalingTargets()
	if cpu := targets.GetCpuUtilizationPercent(); cpu < minAutoscalingCPUPercent || cpu > maxAutoscalingCPUPercent {
		return refusal.Invalid(field+".autoscaling_targets.cpu_utilization_percent", "%d is not between %d and %d", cpu, minAutoscalingCPUPercent, maxAutoscalingCPUPercent)
	}
	low, high := int32(minAutoscalingSSDGiB), int32(maxAutoscalingSSDGiB)
	if c.GetDefaultStorageType() == btapb.StorageType_HDD {
		low, high = minAutoscalingHDDGiB, maxAutoscalingHDDGiB
	}
	switch storage := targets.GetStorageUtilizationGibPerNode(); {
	case storage == 0:
		targets.StorageUtilizationGibPerNode = low
	case storage < low || storage > high:
		return refusal.Invalid(field+".autoscaling_targets.storage_utilization_gib_per_node", "%d is not between %d and %d", storage, low, high)
	}
	return nil
}
