package instancedef

import (
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
)

// StoredInstance is the stored record of an instance. The instance is CREATING until the record's
// time.
type StoredInstance = pending.Record[*btapb.Instance]

// StoredCluster is the stored record of a cluster. Until the record's time, the cluster is RESIZING
// if its message has that state, and CREATING otherwise. Package replica owns the note of the
// record.
type StoredCluster = pending.Record[*btapb.Cluster]

// InstanceAt sets the state of a stored instance to its state at the given time, and returns its
// message.
func InstanceAt(in *StoredInstance, now time.Time) *btapb.Instance {
	if in.Before(now) {
		in.Message.State = btapb.Instance_CREATING
	}
	return in.Message
}

// ClusterAt sets the state of a stored cluster to its state at the given time, and returns its
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

// Creating reports whether a stored cluster is CREATING at a given time. Such a cluster does not
// serve requests.
func Creating(c *StoredCluster, now time.Time) bool {
	return c.Message.GetState() != btapb.Cluster_RESIZING && c.Before(now)
}

// Resize makes a cluster RESIZING until doneAt, which may be in the past. Callers then store the
// cluster. A CREATING cluster stays CREATING. A RESIZING cluster "is still capable of serving
// requests while being resized" (Cluster.State).
func Resize(c *StoredCluster, now, doneAt time.Time) {
	if doneAt.After(now) && !Creating(c, now) {
		c.Message.State = btapb.Cluster_RESIZING
		c.At = doneAt
	}
}
