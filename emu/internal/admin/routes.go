package admin

import (
	"strings"
	"sync"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// Routes holds the routes to recorded instances at a version of the resources, and the
// authorized views that requests have used. It is shared, and its routes are immutable.
type Routes struct {
	version   uint64
	Instances map[string]Route // by name
	views     sync.Map         // *view.View by name
}

// Route holds the app profiles and clusters of an instance.
type Route struct {
	Profiles map[string]*btapb.AppProfile // by id
	Clusters []*instancedef.StoredCluster // sorted by name
}

// CurrentRoutes returns the current routes. Every data request uses them, so they are recomputed
// only after resources have changed.
func (s *Control) CurrentRoutes() (*Routes, error) {
	version := s.DB.ResourceVersion()
	if r := s.routes.Load(); r != nil && r.version == version {
		return r, nil
	}
	// Read instances first: the other resources of each are stored by then.
	instances, err := s.DB.Resources(kindInstance)
	if err != nil {
		return nil, err
	}
	profiles, err := loadAll[btapb.AppProfile](s.DB, kindAppProfile, "")
	if err != nil {
		return nil, err
	}
	clusters, err := loadRecords[btapb.Cluster](s.DB, kindCluster, "")
	if err != nil {
		return nil, err
	}
	now := &Routes{version: version, Instances: make(map[string]Route, len(instances))}
	for _, in := range instances {
		now.Instances[strings.TrimPrefix(in.Name, kindInstance)] = Route{Profiles: map[string]*btapb.AppProfile{}}
	}
	for _, p := range profiles {
		if r, ok := now.Instances[resname.First(p.GetName(), 4)]; ok {
			r.Profiles[resname.Last(p.GetName())] = p
		}
	}
	for _, c := range clusters {
		name := resname.First(c.Message.GetName(), 4)
		if r, ok := now.Instances[name]; ok {
			r.Clusters = append(r.Clusters, c)
			now.Instances[name] = r
		}
	}
	s.routes.Store(now)
	return now, nil
}
