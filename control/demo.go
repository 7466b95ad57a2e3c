package control

import (
	"fmt"
	"net/http"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// demo loads the shipped fixtures, with their mappings. Tables of clients would collide with
// theirs, so it needs a server without tables.
func (s *Server) demo(r *http.Request) (any, error) {
	if !s.opts.Demo {
		return nil, &Error{http.StatusConflict, "no_demo", "this server cannot load the demo: it keeps its data longer than the mappings of the demo, or its DynamoDB endpoint is off", "run tabletop demo --console"}
	}
	if !s.demos.TryLock() {
		return nil, &Error{http.StatusConflict, "not_empty", "another request loads the demo", "GET " + Prefix + "tables lists its tables"}
	}
	defer s.demos.Unlock()
	for _, t := range s.opts.Lab.DB().Tables("") {
		if !tableOf(t).Own {
			return nil, &Error{http.StatusConflict, "not_empty", "the server has tables, such as " + t.Name, "POST " + Prefix + "reset removes them"}
		}
	}
	names, err := s.dynamoDBTables(own(r))
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, &Error{http.StatusConflict, "not_empty", "the server has tables, such as " + names[0] + " of DynamoDB", "POST " + Prefix + "reset removes them"}
	}
	subjects, err := fixtures.Subjects()
	if err != nil {
		return nil, err
	}
	options := s.opts.Lab.Options()
	var mappings []*mapping.Mapping
	var items int64
	for _, subject := range subjects {
		src, m, err := migrate.OpenFixture(subject.Files, source.Options{})
		if err != nil {
			return nil, fmt.Errorf("fixture %s: %w", subject.Name, err)
		}
		o := migrate.LoadOptions{Common: migrate.Common{Project: options.Project, Instance: options.Instance, Mappings: []*mapping.Mapping{m}}}
		loaded, err := migrate.Load(own(r), s.opts.Lab.Bigtable().Conn(), src, o)
		if err != nil {
			return nil, fmt.Errorf("fixture %s: %w", subject.Name, err)
		}
		mappings = append(mappings, m)
		items += loaded.Items
	}
	if err := s.opts.Endpoint.Map(mappings); err != nil {
		return nil, err
	}
	s.demoLoaded.Store(true)
	return map[string]int64{"tables": int64(len(mappings)), "items": items}, nil
}
