package replica

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// Routing chooses the cluster of a request.
type Routing struct {
	View *View
	Now  func() time.Time
	// Draw returns a number in [0, n), for profiles that route to any of n clusters. If Draw is
	// nil, the first cluster that is up serves the request, in the order of the profile and then by
	// name.
	Draw func(n int) int
}

// Draw returns a function for Routing.Draw that is seeded with seed and safe for concurrent use.
func Draw(seed uint64) func(n int) int {
	var mu sync.Mutex
	numbers := rand.New(rand.NewPCG(seed, 1))
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return numbers.IntN(n)
	}
}

// Cluster returns the cluster that serves a request through a profile. clusters are the stored
// clusters of the instance, sorted by name. row is the key of a single-row request, else nil. It
// returns nil if the profile's single cluster does not exist, and UNAVAILABLE if that cluster, or
// every cluster, is not up. A cluster is up if it has not failed and is not CREATING.
// https://cloud.google.com/bigtable/docs/routing
func (r Routing) Cluster(p *btapb.AppProfile, clusters []*instancedef.StoredCluster, row []byte) (*instancedef.StoredCluster, error) {
	if single := p.GetSingleClusterRouting(); single != nil {
		c := find(clusters, single.GetClusterId())
		if c != nil && !r.up(c) {
			return nil, unavailable(single.GetClusterId())
		}
		return c, nil
	}
	use := p.GetMultiClusterRoutingUseAny()
	order := clusters
	if ids := use.GetClusterIds(); len(ids) > 0 {
		order = make([]*instancedef.StoredCluster, 0, len(ids))
		for _, id := range ids {
			if c := find(clusters, id); c != nil {
				order = append(order, c)
			}
		}
	}
	affine := use.GetRowAffinity() != nil && row != nil
	if !affine && r.Draw == nil {
		for _, c := range order {
			if r.up(c) {
				return c, nil
			}
		}
		return nil, noneUp(p)
	}
	order = slices.DeleteFunc(slices.Clone(order), func(c *instancedef.StoredCluster) bool { return !r.up(c) })
	switch {
	case len(order) == 0:
		return nil, noneUp(p)
	case affine:
		return slices.MaxFunc(order, func(a, b *instancedef.StoredCluster) int {
			return compareWeight(row, a.Message.GetName(), b.Message.GetName())
		}), nil
	}
	return order[r.Draw(len(order))], nil
}

// Show sets the state of failed clusters to STATE_NOT_KNOWN, which becomes their state in a
// table's cluster_states: "the replication state of the table is unknown in this cluster", for
// example while a zone is unavailable.
func (v *View) Show(clusters []*btapb.Cluster) {
	for _, c := range clusters {
		if v.Failed(resname.Last(c.GetName())) {
			c.State = btapb.Cluster_STATE_NOT_KNOWN
		}
	}
}

// Check returns an error if the given cluster has failed.
func (v *View) Check(cluster string) error {
	if v.Failed(cluster) {
		return unavailable(cluster)
	}
	return nil
}

// At identifies the cluster that runs an operation.
type At struct {
	Control           *Control
	Instance, Cluster string
}

// Check returns an error if the cluster has failed, according to the current View.
func (a At) Check() error { return a.Control.View(a.Instance).Check(a.Cluster) }

// unavailable returns the error status for a cluster that is not up. Text: ours.
func unavailable(cluster string) error {
	return refusal.New(codes.Unavailable, "Cluster %s is unavailable.", cluster)
}

// noneUp returns the error status for a profile that routes only to clusters that are not up.
// Text: ours.
func noneUp(p *btapb.AppProfile) error {
	return refusal.New(codes.Unavailable, "None of the clusters to which app profile %s routes is available.", p.GetName())
}

// up reports whether a cluster serves requests: it is not CREATING, and has not failed.
func (r Routing) up(c *instancedef.StoredCluster) bool {
	if !c.At.IsZero() && instancedef.Creating(c, r.Now()) {
		return false
	}
	return !r.View.Failed(resname.Last(c.Message.GetName()))
}

func find(clusters []*instancedef.StoredCluster, id string) *instancedef.StoredCluster {
	for _, c := range clusters {
		if resname.Last(c.Message.GetName()) == id {
			return c
		}
	}
	return nil
}

// compareWeight orders clusters for a row by hash. Removing a cluster therefore
// moves only the rows of that cluster.
func compareWeight(row []byte, a, b string) int {
	weight := func(name string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(resname.Last(name)))
		_, _ = h.Write([]byte{0})
		_, _ = h.Write(row)
		// The last bytes of a key hardly affect the upper bits of the hash.
		x := h.Sum64()
		x = (x ^ x>>33) * 0xff51afd7ed558ccd
		x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
		return x ^ x>>33
	}
	if wa, wb := weight(a), weight(b); wa != wb {
		if wa < wb {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}
