package instancedef

import (
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
)

// InstanceAt makes a stored instance what it is at a time: CREATING until the time
// that package pending keeps of it.
func InstanceAt(in *btapb.Instance, now time.Time) *btapb.Instance {
	if pending.Take(in).After(now) {
		in.State = btapb.Instance_CREATING
	}
	return in
}

// ClusterAt makes a stored cluster what it is at a time: CREATING until the time that
// package pending keeps of it, or RESIZING if that is how it is stored.
func ClusterAt(c *btapb.Cluster, now time.Time) *btapb.Cluster {
	creating := Creating(c, now)
	switch under := pending.Take(c).After(now); {
	case creating:
		c.State = btapb.Cluster_CREATING
	case !under:
		c.State = btapb.Cluster_READY
	}
	return c
}

// Creating reports whether a stored cluster is CREATING at a time, and does not serve
// requests yet.
func Creating(c *btapb.Cluster, now time.Time) bool {
	return c.GetState() != btapb.Cluster_RESIZING && pending.Of(c).After(now)
}

// Resize makes a cluster RESIZING until doneAt, before the cluster is stored: "a cluster is
// still capable of serving requests while being resized" (Cluster.State). A cluster that is
// CREATING stays so. doneAt may have passed already.
func Resize(c *btapb.Cluster, now, doneAt time.Time) {
	if doneAt.After(now) && !Creating(c, now) {
		c.State = btapb.Cluster_RESIZING
		pending.Set(c, doneAt)
	}
}
