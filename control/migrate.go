package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

var errNoFixtures = &Error{http.StatusConflict, "no_fixtures", "the server was given no folder of fixtures", "start it with --fixtures DIR"}

// fixtures lists the folders that can be migrated.
func (s *Server) fixtures(*http.Request) (any, error) {
	names := []string{}
	if s.opts.Fixtures == nil {
		return nil, errNoFixtures
	}
	entries, err := fs.ReadDir(s.opts.Fixtures, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return map[string]any{"fixtures": names}, nil
}

// migrate runs a verb of migrate on a fixture. Verify runs in a store of its own.
func (s *Server) migrate(r *http.Request) (any, error) {
	var in struct {
		Fixture string  `json:"fixture"`
		Mapping *string `json:"mapping"` // the text of another mapping. Default: the fixture's own
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	folder, err := s.folder(in.Fixture)
	if err != nil {
		return nil, err
	}
	if in.Mapping != nil {
		folder = edited{folder, []byte(*in.Mapping)}
	}
	var done *report.Report
	switch verb := r.PathValue("verb"); verb {
	case "plan":
		var text []byte
		if text, err = plan(r, folder); err == nil {
			return json.RawMessage(text), nil
		}
	case "lint":
		done, err = migrate.Lint(r.Context(), migrate.OfFixture(folder), migrate.LintOptions{})
	case "verify":
		done, err = s.verify(r, folder)
	default:
		return nil, notFound("verb", verb, "want plan, verify or lint")
	}
	if err != nil {
		return nil, refused(err)
	}
	var text bytes.Buffer
	if err := done.WriteJSON(&text); err != nil {
		return nil, err
	}
	return json.RawMessage(text.Bytes()), nil
}

func plan(r *http.Request, folder fs.FS) ([]byte, error) {
	src, own, err := migrate.OpenFixture(folder, source.Options{})
	if err != nil {
		return nil, err
	}
	var o migrate.PlanOptions
	if own != nil {
		o.Mappings = []*mapping.Mapping{own}
	}
	p, err := migrate.MakePlan(r.Context(), src, o)
	if err != nil {
		return nil, err
	}
	return p.JSON()
}

func (s *Server) verify(r *http.Request, folder fs.FS) (done *report.Report, err error) {
	at, err := fixtures.Clock(folder)
	if err != nil {
		return nil, err
	}
	c := clock.New()
	if !at.IsZero() {
		c = clock.NewFrozen(at)
	}
	private := lab.New(lab.Options{Clock: c, Logger: s.opts.Lab.Options().Logger, Project: "tabletop", Instance: "tabletop"})
	if err := private.Open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, private.Close()) }()
	o := migrate.VerifyOptions{Common: migrate.Common{Now: func() time.Time { return c.Now() }}}
	return migrate.Verify(r.Context(), private.Bigtable().Conn(), migrate.OfFixture(folder), o)
}
