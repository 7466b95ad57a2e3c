package control

import (
	"cmp"
	"encoding/json"
	"net/http"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/control/internal/requests"
	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

// sqlColumn is a column of a result.
type sqlColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// sqlAnswer is the result of a query.
type sqlAnswer struct {
	Columns []sqlColumn `json:"columns"`
	Rows    [][]any     `json:"rows"`
	More    bool        `json:"more,omitempty"`    // rows were left out
	Request *record     `json:"request,omitempty"` // the execution
}

// sql runs a SQL query and returns its first rows. Like a query of a client, it is recorded, and faults affect
// it.
func (s *Server) sql(r *http.Request) (any, error) {
	var in struct {
		Query    string   `json:"query"`
		Project  string   `json:"project"`  // default: that of the DynamoDB tables
		Instance string   `json:"instance"` // likewise
		Params   []string `json:"params"`   // NAME:TYPE=VALUE
		Limit    int      `json:"limit"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	most := cmp.Or(in.Limit, defaultRows)
	if most < 1 || most > maxRows {
		return nil, badRequest("limit is %d, want 1 to %d", in.Limit, maxRows)
	}
	o := s.opts.Lab.Options()
	q := sqlclient.Query{
		Instance: "projects/" + cmp.Or(in.Project, o.Project) + "/instances/" + cmp.Or(in.Instance, o.Instance), Text: in.Query, Params: map[string]*btpb.Value{},
	}
	for _, text := range in.Params {
		name, v, err := sqlclient.ParseParam(text)
		if err != nil {
			return nil, badRequest("params: %v", err)
		}
		q.Params[name] = v
	}
	found, err := sqlclient.Run(r.Context(), s.opts.Lab.Bigtable().Conn(), q)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	out := &sqlAnswer{Rows: [][]any{}}
	for _, c := range found.Columns {
		out.Columns = append(out.Columns, sqlColumn{c.GetName(), sqlclient.TypeText(c.GetType())})
	}
	size := 0
	for row, err := range found.All() {
		if err != nil {
			return nil, err
		}
		if len(out.Rows) == most || size > maxPageBytes {
			out.More = true
			return out, nil // the execution has not ended
		}
		values := sqlclient.Page(row, found.Columns)
		text, err := json.Marshal(values)
		if err != nil {
			return nil, err
		}
		size += len(text)
		out.Rows = append(out.Rows, values)
	}
	id := requests.QueryID(found.Prepared)
	s.log.Newest(func(rec *requests.Record) bool {
		if rec.RequestID != id {
			return true
		}
		shown := recordOf(rec, false)
		out.Request = &shown
		return false
	})
	return out, nil
}
