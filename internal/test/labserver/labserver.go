// Package labserver starts a lab with its DynamoDB endpoint and its control API for a test.
package labserver

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/docs"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Token is the token of the control API.
const Token = "secret"

// Options configures Start.
type Options struct {
	// Project and Instance name the project and instance of the lab. Default: p and i.
	Project, Instance string
	// Clock is the lab's clock. Default: frozen at 2023-11-14T22:13:20Z.
	Clock *clock.Clock
	// Logger is the lab's logger. Default: nothing is logged.
	Logger *slog.Logger
	// Fixture is the name of a shipped fixture, which is loaded with its mapping. Default: none.
	Fixture string
	// Closed leaves the DynamoDB endpoint closed.
	Closed bool
	// ViewLag is the lag of materialized views; see emu.Options.
	ViewLag time.Duration
	// Control configures the API. Start sets Lab, Endpoint, Requests, Token and Version.
	Control control.Options
}

// Server is a running lab with its control API.
type Server struct {
	Lab      *lab.Lab
	DynamoDB *dynamodb.Endpoint
	API      *control.Server
	URL      string           // URL of the API
	Mapping  *mapping.Mapping // mapping of Options.Fixture
}

// Start starts a server that stops at the end of the test.
func Start(t *testing.T, o Options) *Server {
	t.Helper()
	s := &Server{}
	var src *source.Source
	var mappings []*mapping.Mapping
	if o.Fixture != "" {
		files, err := fs.Sub(fixtures.Folder(), o.Fixture)
		if err == nil {
			src, s.Mapping, err = migrate.OpenFixture(files, source.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		mappings = append(mappings, s.Mapping)
	}
	if o.Clock == nil {
		o.Clock = clock.NewFrozen(time.Unix(1_700_000_000, 0).UTC())
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Project, o.Instance = cmp.Or(o.Project, "p"), cmp.Or(o.Instance, "i")
	seen := control.NewRequests()
	s.Lab = lab.New(lab.Options{
		Clock: o.Clock, Logger: o.Logger, Project: o.Project, Instance: o.Instance,
		Bigtable: emu.Options{Observe: seen.Observe, CountLoad: true, ViewLag: o.ViewLag},
	})
	s.DynamoDB = dynamodb.New(s.Lab, facade.Options{NoAuth: true, Observe: seen.ObserveDynamoDB, Mappings: mappings})
	if err := s.Lab.Open(); err != nil {
		t.Fatal(err)
	}
	o.Control.Lab, o.Control.Endpoint, o.Control.Requests, o.Control.Token, o.Control.Version, o.Control.Documents = s.Lab, s.DynamoDB, seen, Token, "test", docs.Site{}
	s.API = control.New(o.Control)
	srv := httptest.NewServer(s.API)
	s.URL = srv.URL
	t.Cleanup(func() {
		err := s.API.Close()
		srv.CloseClientConnections()
		srv.Close()
		if err := errors.Join(err, s.Lab.Close()); err != nil {
			t.Error(err)
		}
	})
	if src != nil {
		load := migrate.LoadOptions{Common: migrate.Common{Project: o.Project, Instance: o.Instance, Mappings: mappings}}
		if _, err := migrate.Load(t.Context(), s.Lab.Bigtable().Conn(), src, load); err != nil {
			t.Fatal(err)
		}
	}
	if !o.Closed {
		if err := s.DynamoDB.Open(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
