package replica

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// filling is how a cluster began that was added to an instance: with what another one
// saw at a time. It is the note of the stored cluster, so that a restart knows of it; what
// was on its way then still is.
type filling struct {
	from   string // a cluster, by id
	number uint64 // of the last record when the cluster was added
	at     int64  // when it was filled, in microseconds
}

// Fill returns the note of a new cluster, by which it is filled at a time with
// the rows that the nearest of the others sees then: a cluster that is up, in the same
// region if there is one, the first by name.
func (c *Control) Fill(added *btapb.Cluster, others []*instancedef.StoredCluster, at time.Time) []byte {
	if len(others) == 0 {
		return nil
	}
	instance, _, _ := strings.Cut(added.GetName(), "/clusters/")
	routing := Routing{View: c.View(instance), Now: c.o.Now}
	region := instancedef.RegionOf(resname.Last(added.GetLocation()))
	distance := func(o *instancedef.StoredCluster) (far int) {
		if !routing.up(o) {
			far += 2
		}
		if instancedef.RegionOf(resname.Last(o.Message.GetLocation())) != region {
			far++
		}
		return far
	}
	nearest := slices.MinFunc(others, func(a, b *instancedef.StoredCluster) int { return distance(a) - distance(b) })
	number, _ := c.o.Last()
	note := binary.AppendUvarint(nil, number)
	note = binary.AppendVarint(note, at.UnixMicro())
	return append(note, resname.Last(nearest.Message.GetName())...)
}

// fillings returns how those of stored clusters began that were added, by id.
func fillings(clusters []*instancedef.StoredCluster) map[string]filling {
	var out map[string]filling
	for _, c := range clusters {
		note := c.Note
		number, n := binary.Uvarint(note)
		at, m := binary.Varint(note[max(n, 0):])
		if n <= 0 || m <= 0 {
			continue // one that was there from the beginning
		}
		if out == nil {
			out = map[string]filling{}
		}
		out[resname.Last(c.Message.GetName())] = filling{from: string(note[n+m:]), number: number, at: at}
	}
	return out
}

// idsOf returns the ids of clusters.
func idsOf(clusters []*instancedef.StoredCluster) []string {
	ids := make([]string, len(clusters))
	for i, c := range clusters {
		ids[i] = resname.Last(c.Message.GetName())
	}
	return ids
}

// fill is what the second cluster of a pair began with of the first one.
type fill struct {
	filling
	seen *link // of the first one in the cluster it is from; nil: they are the same
}

// has tells whether a record was seen where the cluster was filled from. A record that is
// due there counts as seen, although one before it may have a longer lag.
func (f *fill) has(number uint64, micros int64) bool {
	if number > f.number && micros >= f.at { // where a clock stands still, commit times run ahead of it
		return false
	}
	if f.seen == nil {
		return true
	}
	at, known := f.seen.due(number, micros)
	return known && at <= f.at
}

// between returns the link of a pair of an instance's clusters, with what the second
// one began with.
func (v *View) between(p pair, began map[string]filling) *link {
	l := v.of(p)
	f, ok := began[p.to]
	if !ok {
		return l
	}
	filled := *l
	filled.fill = &fill{filling: f}
	if p.from != f.from {
		before := maps.Clone(began)
		delete(before, p.to) // the other may be a later one of its name, and filled from this
		filled.fill.seen = v.between(pair{p.from, f.from}, before)
	}
	return &filled
}

// all returns the links of all pairs of an instance's clusters, as they are stored.
func (v *View) all(clusters []*instancedef.StoredCluster) map[pair]*link {
	links, began := map[pair]*link{}, fillings(clusters)
	for _, from := range idsOf(clusters) {
		for _, to := range idsOf(clusters) {
			if p := (pair{from, to}); from != to {
				links[p] = v.between(p, began)
			}
		}
	}
	return links
}
