package facade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// openNamespaces opens the namespaces whose catalogs exist, so that unfinished work in them
// continues.
func (s *Server) openNamespaces(ctx context.Context) error {
	s.namespaces = newNamespaces(s.opts.maxNamespaces, s.opts.open)
	ids, err := s.store.BigtableTables(ctx)
	if err != nil {
		return fmt.Errorf("listing the namespaces: %w", err)
	}
	return s.namespaces.OpenAll(ctx, ids)
}

// forCaller returns the server for a caller. It is s itself, unless Options.Namespaced is set.
func (s *Server) forCaller(ctx context.Context, c wire.Caller) (*Server, error) {
	if c == (wire.Caller{}) {
		return s, nil
	}
	if s.namespaces == nil {
		s.noteCaller(ctx, c)
		return s, nil
	}
	st, err := s.namespaces.Of(ctx, c)
	if err != nil {
		return nil, err
	}
	opts := s.opts
	if c.Region != "" {
		opts.Region = c.Region
	}
	server := &Server{opts: opts, store: st, pages: s.pages, keys: s.keys}
	server.throttle = s.throttle.For(server.tableARN)
	return server, nil
}

// noteCaller logs a warning, once per server, if a caller has a different key or region from
// the first caller: on AWS they would not share tables.
func (s *Server) noteCaller(ctx context.Context, c wire.Caller) {
	if first := s.firstCaller.Load(); first != nil && *first == c {
		return
	}
	kept := c // not c itself, which would escape to the heap for every request
	if s.firstCaller.CompareAndSwap(nil, &kept) || *s.firstCaller.Load() == c || !s.otherCallers.CompareAndSwap(false, true) {
		return
	}
	first := s.firstCaller.Load()
	what, regions := "access keys and regions", []any{slog.String("region", first.Region), slog.String("otherRegion", c.Region)}
	switch {
	case first.Region == c.Region:
		what, regions = "access keys", nil
	case first.AccessKey == c.AccessKey:
		what = "regions"
	}
	s.opts.Logger.WarnContext(ctx, "clients sign with different "+what+": they share the tables", regions...)
}

// stores returns the store of s and, if Options.Namespaced is set, those of all namespaces.
func (s *Server) stores() []*store.Store {
	all := []*store.Store{s.store}
	if s.namespaces == nil {
		return all
	}
	return append(all, s.namespaces.Stores()...)
}

// ReapExpired deletes the items that have expired by Options.Now in all tables with a
// time to live. It also ends transactions that timed out, removes the remains of DELETING
// tables, and resumes the jobs of servers that ended. It returns the number of deleted
// items, even if it returns an error. The owner of the Server must call it, on a timer or
// after moving the clock.
//
// ReapExpired reads only the due times, never a whole table, and checks an item again
// before deleting it. An item that a transaction has locked stays until the next call.
func (s *Server) ReapExpired(ctx context.Context) (deleted int, err error) {
	for _, st := range s.stores() {
		n, err := st.Tidy(ctx)
		if deleted += n; err == nil {
			err = st.Jobs.Tidy(ctx)
		}
		if err != nil {
			return deleted, fmt.Errorf("facade: %w", err)
		}
	}
	return deleted, nil
}

// NextDue returns the first time in (after, until] at which ReapExpired has work: an item
// expires, or the deletion of a table ends. found is false if ReapExpired has no work in
// that time. A caller that moves Options.Now by a large step can stop at each such time, so
// that each item is deleted at its expiry.
func (s *Server) NextDue(ctx context.Context, after, until time.Time) (next time.Time, found bool, err error) {
	for _, st := range s.stores() {
		at, ok, err := st.NextDue(ctx, after, until)
		if err != nil {
			return time.Time{}, false, fmt.Errorf("facade: %w", err)
		}
		if ok && (!found || at.Before(next)) {
			next, found = at, true
		}
	}
	return next, found, nil
}

// Close stops the background work of the server, which the next server over the same
// Bigtable resumes. It does not close Options.Conn or Options.Buckets.
func (s *Server) Close() error {
	var errs []error
	for _, st := range s.stores() {
		errs = append(errs, st.Close())
	}
	if sink, ok := s.opts.sink.(io.Closer); ok {
		errs = append(errs, sink.Close())
	}
	return errors.Join(errs...)
}
