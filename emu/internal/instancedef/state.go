package instancedef

import (
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
)

// StoredInstance is a stored instance, CREATING before its time.
type StoredInstance = pending.Record[*btapb.Instance]

// StoredCluster is a stored cluster. Before its time it is CREATING, or
// RESIZING if its message has that state. Package replica owns its note.
type StoredCluster = pending.Record[*btapb.Cluster]

// InstanceAt changes a stored instance to its state at a time, and returns its
// message.
func InstanceAt(in *StoredInstance, now time.Time) *btapb.Instance {
	if in.Before(now) {
		in.Message.State = btapb.Instance_CREATING
	}
	return in.Message
}

// ClusterAt changes a stored cluster to its state at a time, and returns its
// message.
func ClusterAt(c *StoredCluster, now time.Time) *btapb.Cluster {
	switch {
	case Creating(c, now):
		c.Message.State = btapb.Cluster_CREATING
	case !c.Before(now):
		c.Message.State = btapb.Cluster_READY
	}
	return c.Message
}

// Creating reports whether a stored cluster is CREATING at a time, so that it
// does not serve requests.
func Creating(c *StoredCluster, now time.Time) bool {
	return c.Message.GetState() != btapb.Cluster_RESIZING && c.Before(now)
}

// Resize makes a cluster RESIZING until doneAt, before the cluster is stored:
// "a cluster is still capable of serving requests while being resized"
// (Cluster.State). A CREATING cluster stays so. doneAt may be past.
func Resize(c *StoredCluster, now, doneAt time.Time) {
	if doneAt.After(now) && !Creating(c, now) {
		c.Message.State = btapb.Cluster_RESIZING
		c.At = doneAt
	}
}
