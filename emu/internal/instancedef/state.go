package instancedef

import (
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
)

// StoredInstance is an instance as it is stored: CREATING before its time.
type StoredInstance = pending.Record[*btapb.Instance]

// StoredCluster is a cluster as it is stored: CREATING before its time, or RESIZING if that is
// the state of its message. Its note is of package replica.
type StoredCluster = pending.Record[*btapb.Cluster]

// InstanceAt makes the message of a stored instance what it is at a time, and returns it.
func InstanceAt(in *StoredInstance, now time.Time) *btapb.Instance {
	if in.Before(now) {
		in.Message.State = btapb.Instance_CREATING
	}
	return in.Message
}

// ClusterAt makes the message of a stored cluster what it is at a time, and returns it.
func ClusterAt(c *StoredCluster, now time.Time) *btapb.Cluster {
	switch {
	case Creating(c, now):
		c.Message.State = btapb.Cluster_CREATING
	case !c.Before(now):
		c.Message.State = btapb.Cluster_READY
	}
	return c.Message
}

// Creating reports whether a stored cluster is CREATING at a time, and does not serve
// requests yet.
func Creating(c *StoredCluster, now time.Time) bool {
	return c.Message.GetState() != btapb.Cluster_RESIZING && c.Before(now)
}

// Resize makes a cluster RESIZING until doneAt, before the cluster is stored: "a cluster is
// still capable of serving requests while being resized" (Cluster.State). A cluster that is
// CREATING stays so. doneAt may have passed already.
func Resize(c *StoredCluster, now, doneAt time.Time) {
	if doneAt.After(now) && !Creating(c, now) {
		c.Message.State = btapb.Cluster_RESIZING
		c.At = doneAt
	}
}
