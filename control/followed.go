package control

import (
	"net/http"
	"strings"

	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate"
)

// followedTable is a table into which a live table of DynamoDB is followed.
type followedTable struct {
	Project  string `json:"project"`
	Instance string `json:"instance"`
	migrate.FollowStatus
}

// followed returns the states of the migrations into this server. An instance without the table of states
// costs no call.
func (s *Server) followed(r *http.Request) (any, error) {
	out := []followedTable{}
	for _, t := range s.opts.Lab.DB().Tables("") {
		parent, id, _ := strings.Cut(t.Name, "/tables/")
		if id != ms.Table {
			continue
		}
		project, instance, _ := strings.Cut(strings.TrimPrefix(parent, "projects/"), "/instances/")
		all, err := migrate.Status(own(r), s.opts.Lab.Bigtable().Conn(), migrate.Common{Project: project, Instance: instance, Now: s.opts.Lab.Clock().Now})
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			out = append(out, followedTable{project, instance, one})
		}
	}
	return map[string]any{"tables": out}, nil
}
