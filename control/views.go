package control

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// The values of viewJSON.State.
const (
	viewComplete = "complete"
	viewFilling  = "filling"
	viewRefill   = "refill"
)

// viewJSON is a view in answers.
type viewJSON struct {
	Name     string      `json:"name"`     // its resource name
	Instance string      `json:"instance"` // its id
	View     string      `json:"view"`     // its id
	Kind     string      `json:"kind"`     // "logical" or "materialized"
	Query    string      `json:"query"`
	Reads    []string    `json:"reads"` // the ids of tables and materialized views
	Columns  []sqlColumn `json:"columns"`
	// Of a materialized view: the state of its rows, the next row of the table while they are filled,
	// and the time of the oldest change that its reads do not show.
	State  string     `json:"state,omitempty"`
	Next   *Bytes     `json:"next,omitempty"`
	Hidden *time.Time `json:"hidden,omitempty"`
}

func viewOf(v *emu.View) viewJSON {
	parts := strings.Split(v.Name, "/") // projects/P/instances/I/logicalViews/V
	out := viewJSON{Name: v.Name, Instance: parts[3], View: parts[5], Kind: "logical", Query: v.Query, Reads: append([]string{}, v.Reads...), Columns: []sqlColumn{}}
	for _, c := range v.Columns {
		out.Columns = append(out.Columns, sqlColumn(c))
	}
	if m := v.Materialized; m != nil {
		out.Kind, out.State = "materialized", viewComplete
		if !m.Hidden.IsZero() {
			at := m.Hidden.UTC()
			out.Hidden = &at
		}
		if m.Refill {
			out.State = viewRefill
		}
		if m.Filling {
			next := bytesOf(m.Next)
			out.State, out.Next = viewFilling, &next
		}
	}
	return out
}

// views lists the views of all instances.
func (s *Server) views(r *http.Request) (any, error) {
	found, err := s.opts.Lab.Bigtable().Views(r.Context())
	if err != nil {
		return nil, err
	}
	out := struct {
		Lag   string     `json:"lag"` // a duration, or "manual"
		Views []viewJSON `json:"views"`
	}{"manual", []viewJSON{}}
	if lag := s.opts.Lab.Options().Bigtable.ViewLag; lag != emu.ManualViews {
		out.Lag = lag.String()
	}
	for i := range found {
		out.Views = append(out.Views, viewOf(&found[i]))
	}
	return out, nil
}

// refreshViews makes the materialized views reflect all changes of their tables.
func (s *Server) refreshViews(r *http.Request) (any, error) {
	return nothing{}, s.opts.Lab.Bigtable().RefreshViews(r.Context())
}

// viewRows reads rows of a materialized view.
func (s *Server) viewRows(r *http.Request) (any, error) { return s.rowsOfView(r, r.PathValue("view")) }

func (s *Server) rowsOfView(r *http.Request, id string) (any, error) {
	project := cmp.Or(r.URL.Query().Get("project"), s.opts.Lab.Options().Project)
	client := btclient.New(s.opts.Lab.Bigtable().Conn(), project, r.PathValue("instance"), btclient.Options{})
	out, err := rowsPage(r, client, btclient.Read{Table: id, View: true}, nil)
	if status.Code(err) == codes.NotFound {
		return nil, notFound("materialized view", id, "GET "+Prefix+"views lists the views")
	}
	return out, err
}

// viewNamed returns the view that has the instance and the id of a table, nil without one. A materialized view
// precedes a logical one.
func viewNamed(ctx context.Context, s *Server, table string) *emu.View {
	parent, id, _ := strings.Cut(table, "/tables/")
	views, err := s.opts.Lab.Bigtable().Views(ctx)
	if err != nil {
		return nil
	}
	for _, kind := range []string{"/materializedViews/", "/logicalViews/"} {
		for i := range views {
			if views[i].Name == parent+kind+id {
				return &views[i]
			}
		}
	}
	return nil
}
