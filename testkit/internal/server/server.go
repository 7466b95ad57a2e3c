// Package server runs the Bigtable server of a test environment: it opens the lab, connects clients
// to it and closes it when the test ends. Packages btkit and testkit are its public API.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/testkit/internal/iam"
)

// streamWorkers is about the number of concurrent calls of a test: starting the workers of a
// server for many clients would take a twentieth of the time from Start to the first answer.
const streamWorkers = 4

// Config holds the settings that the options of an environment change.
type Config struct {
	// Lab holds the options of the lab. Defaults: Project and Instance are "tabletop", the clock
	// follows the machine's clock, and nothing is logged.
	Lab lab.Options
	// Roles, if not nil, makes the server enforce IAM policies with these roles. Default: nil, no
	// call is denied.
	Roles *iam.Roles
	// Restarts makes Reopen keep data that is in memory.
	Restarts bool
}

// Server is the Bigtable server of an environment. Its methods are safe for concurrent use, except
// for Reopen.
type Server struct {
	tb     testing.TB
	config Config
	lab    *lab.Lab
	ended  atomic.Bool // the test has ended

	mu      sync.Mutex // guards the fields below, which are set on first use
	conn    *grpc.ClientConn
	addr    string
	serving sync.WaitGroup // of the Serve loops
}

// Start starts a server that lives as long as the test tb. Any error fails tb at once.
func Start(tb testing.TB, c Config) *Server {
	tb.Helper()
	o := &c.Lab
	if o.Project == "" && o.Instance == "" {
		o.Project, o.Instance = "tabletop", "tabletop"
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Bigtable.StreamWorkers = streamWorkers
	if c.Restarts && o.Store.Dir == "" {
		o.Store.Dir, o.Store.FS, o.Store.NoSync = "/store", engine.NewMemFS(), true // not read after a crash
	}
	s := &Server{tb: tb}
	if c.Roles != nil {
		g := &guard{server: s, roles: c.Roles}
		o.Bigtable.UnaryInterceptor, o.Bigtable.StreamInterceptor = g.unary, g.stream
	}
	s.config = c
	s.lab = lab.New(c.Lab)
	if err := s.lab.Open(); err != nil {
		s.lab.End()
		tb.Fatalf("testkit: %v", err)
	}
	tb.Cleanup(s.close)
	return s
}

// TB returns the test that was passed to Start. After the end of that test it panics, because the
// methods that use it have no test to fail and return no error.
func (s *Server) TB() testing.TB {
	if s.ended.Load() {
		panic(s.endedText())
	}
	return s.tb
}

// Use fails the test tb after the end of the environment's test. Methods of an environment that
// have a parameter tb call it first; the others call TB.
func (s *Server) Use(tb testing.TB) {
	tb.Helper()
	if s.ended.Load() {
		tb.Fatalf("%s", s.endedText())
	}
}

func (s *Server) endedText() string {
	return fmt.Sprintf("testkit: the environment of %s is used after that test ended", s.tb.Name())
}

// Lab returns the lab that the server runs on.
func (s *Server) Lab() *lab.Lab { return s.lab }

// Context returns the context for work that outlives a call. It is canceled after the test.
func (s *Server) Context() context.Context { return s.lab.Context() }

// Roles returns the roles that IAM enforcement uses, or nil if policies are not enforced.
func (s *Server) Roles() *iam.Roles { return s.config.Roles }

// InstanceName returns the resource name of the environment's instance.
func (s *Server) InstanceName() string {
	return "projects/" + s.config.Lab.Project + "/instances/" + s.config.Lab.Instance
}

// Elsewhere returns text for an error about a Bigtable table: the place of the rows if table is the name
// of a DynamoDB table, otherwise "".
func (s *Server) Elsewhere(table string) string {
	if id := s.lab.RowsOf(s.Context(), table); id != "" {
		return fmt.Sprintf("; the rows of DynamoDB table %s are in Bigtable table %s", table, id)
	}
	return ""
}

// Must fails the environment's test if err is not nil.
func (s *Server) Must(call string, err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatalf("testkit: %s: %v", call, err)
	}
}

// Addr returns the loopback address of the Bigtable server as host:port. The first call opens the
// port.
func (s *Server) Addr() string {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr == "" {
		lis := s.Listen()
		s.addr = lis.Addr().String()
		s.serveLocked(lis)
	}
	return s.addr
}

// Listen opens a loopback port.
func (s *Server) Listen() net.Listener {
	s.tb.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.tb.Fatalf("testkit: %v", err)
	}
	return lis
}

func (s *Server) serveLocked(lis net.Listener) {
	s.serving.Go(func() {
		if err := s.lab.Bigtable().Serve(lis); err != nil {
			s.tb.Errorf("testkit: Bigtable server: %v", err)
		}
	})
}

// closeStore closes the store, if it is open, with the connection and the listeners in
// this process. mu is held.
func (s *Server) closeStore() error {
	var err error
	if s.conn != nil {
		if err = s.conn.Close(); err != nil {
			err = fmt.Errorf("closing the connection: %w", err)
		}
		s.conn = nil
	}
	return errors.Join(err, s.lab.CloseStore(s.serving.Wait))
}

// Reopen closes the store and opens it again. The environment must have been started with Restarts
// or with a folder, because data that is only in memory would be lost. Existing clients and ports
// stop working, and no other method may be called meanwhile, so only the sole user of an
// environment may call it. A DynamoDB endpoint must be closed before and started afterwards.
func (s *Server) Reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.closeStore(); err != nil {
		return err
	}
	return s.lab.Open()
}

// close ends the server. A DynamoDB endpoint over it must have been closed before.
func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended.Store(true)
	s.lab.End()
	if err := s.closeStore(); err != nil {
		s.tb.Errorf("testkit: closing the store: %v", err)
	}
}
