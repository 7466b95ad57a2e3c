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

// filling describes the initial data of an added cluster: the data that another
// cluster saw at a given time. It is the note of the stored cluster, so that a
// restart restores it with all pending records.
type filling struct {
	from   string // id of the source cluster
	number uint64 // of the last record when the cluster was added
	at     int64  // when it was filled, in microseconds
}

// Fill returns the encoded filling of a cluster that is added at a given time, or nil if others
// is empty. others are the other clusters, sorted by name. The source is preferably a cluster
// that is up, then one in the same region, then the first by name.
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

// fillings decodes the notes of added clusters, and returns their fillings by cluster id.
func fillings(clusters []*instancedef.StoredCluster) map[string]filling {
	var out map[string]filling
	for _, c := range clusters {
		note := c.Note
		number, n := binary.Uvarint(note)
		at, m := binary.Varint(note[max(n, 0):])
		if n <= 0 || m <= 0 {
			continue // an original cluster, which was not added
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

// fill describes which records of the first cluster of a pair the second one had from the start:
// those that the source of its initial data had seen.
type fill struct {
	filling
	seen *link // from the first cluster to the source; nil if the first cluster is the source
}

// has reports whether the source had seen a record when the cluster was filled.
// A record that was due counts as seen, even if an earlier record has a longer
// lag.
func (f *fill) has(number uint64, micros int64) bool {
	if number > f.number && micros >= f.at { // commit times run ahead of a stopped clock
		return false
	}
	if f.seen == nil {
		return true
	}
	at, known := f.seen.due(number, micros)
	return known && at <= f.at
}

// between returns the link of pair p. If began has a filling of cluster p.to, the link includes
// it. began maps the ids of added clusters to their fillings.
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
		delete(before, p.to) // a later cluster of the source's name may have been filled from this one
		filled.fill.seen = v.between(pair{p.from, f.from}, before)
	}
	return &filled
}

// all returns the links of all pairs of an instance's stored clusters.
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
