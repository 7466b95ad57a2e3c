package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"slices"
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

// folders returns the fixture folders: those of the options, or the shipped ones after the demo
// was loaded; nil for none.
func (s *Server) folders() fs.FS {
	if s.opts.Fixtures == nil && s.demoLoaded.Load() {
		return fixtures.Folder()
	}
	return s.opts.Fixtures
}

// fixtures lists the folders that can be migrated.
func (s *Server) fixtures(*http.Request) (any, error) {
	names := []string{}
	all := s.folders()
	if all == nil {
		return nil, errNoFixtures
	}
	entries, err := fs.ReadDir(all, ".")
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

// migrate runs a command of migrate on a fixture. Verify runs in a separate store.
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
	verb := r.PathValue("verb")
	if !slices.Contains([]string{"plan", "verify", "lint"}, verb) {
		return nil, notFound("verb", verb, "want plan, verify or lint")
	}
	progress, end := s.runs.begin(in.Fixture, verb)
	defer end()
	var done *report.Report
	switch verb {
	case "plan":
		var text []byte
		if text, err = plan(r, folder, progress); err == nil {
			return json.RawMessage(text), nil
		}
	case "lint":
		done, err = migrate.Lint(r.Context(), migrate.OfFixture(folder), migrate.LintOptions{Common: migrate.Common{Progress: progress}})
	default:
		done, err = s.verify(r, folder, progress)
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

func plan(r *http.Request, folder fs.FS, progress func(source.Progress)) ([]byte, error) {
	src, own, err := migrate.OpenFixture(folder, source.Options{})
	if err != nil {
		return nil, err
	}
	o := migrate.PlanOptions{Common: migrate.Common{Progress: progress}}
	if own != nil {
		o.Mappings = []*mapping.Mapping{own}
	}
	p, err := migrate.MakePlan(r.Context(), src, o)
	if err != nil {
		return nil, err
	}
	return p.JSON()
}

func (s *Server) verify(r *http.Request, folder fs.FS, progress func(source.Progress)) (done *report.Report, err error) {
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
	o := migrate.VerifyOptions{Common: migrate.Common{Now: func() time.Time { return c.Now() }, Progress: progress}}
	return migrate.Verify(r.Context(), private.Bigtable().Conn(), migrate.OfFixture(folder), o)
}
