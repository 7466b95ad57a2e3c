package facade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// namespaces keeps the tables of each access key and region apart, each with a
// catalog of its own.
type namespaces struct {
	mu     sync.Mutex
	stores map[string]*store // by id of the catalog
}

// namespacePrefix begins the ids of the catalogs.
const namespacePrefix = catalogTable + "-"

// catalogOf is the id of the catalog of a caller.
func catalogOf(c wire.Caller) string {
	sum := sha256.Sum256([]byte(c.AccessKey + "\x00" + c.Region))
	return namespacePrefix + hex.EncodeToString(sum[:8])
}

// openNamespaces opens the namespaces that are there, so that what was under
// way in them goes on.
func (s *Server) openNamespaces(ctx context.Context) error {
	s.namespaces = &namespaces{stores: map[string]*store{}}
	token := ""
	for {
		resp, err := s.store.admin.ListTables(ctx, &btapb.ListTablesRequest{Parent: s.store.instance, View: btapb.Table_NAME_ONLY, PageToken: token})
		if err != nil {
			return fmt.Errorf("listing the namespaces: %w", err)
		}
		for _, t := range resp.GetTables() {
			id := strings.TrimPrefix(t.GetName(), s.store.tablePath(""))
			if !strings.HasPrefix(id, namespacePrefix) {
				continue
			}
			if _, err := s.namespaceStore(ctx, id); err != nil {
				return err
			}
		}
		if token = resp.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

// namespaceStore returns the store over a catalog, creating it if need be.
// Whoever makes up keys gets no further than Options.maxNamespaces.
func (s *Server) namespaceStore(ctx context.Context, catalog string) (*store, error) {
	n := s.namespaces
	n.mu.Lock()
	defer n.mu.Unlock()
	if st := n.stores[catalog]; st != nil {
		return st, nil
	}
	if most := s.opts.maxNamespaces; len(n.stores) >= most {
		return nil, limitExceededError(fmt.Sprintf(msgTooManyNamespaces, most))
	}
	opts := s.opts
	opts.catalog = catalog
	st, err := newStore(ctx, opts)
	if err != nil {
		return nil, err
	}
	n.stores[catalog] = st
	return st, nil
}

// forCaller returns the server that a caller sees: s itself, unless the tables
// of callers are kept apart.
func (s *Server) forCaller(ctx context.Context, c wire.Caller) (*Server, error) {
	if c == (wire.Caller{}) {
		return s, nil
	}
	if s.namespaces == nil {
		s.noteCaller(ctx, c)
		return s, nil
	}
	st, err := s.namespaceStore(ctx, catalogOf(c))
	if err != nil {
		return nil, err
	}
	opts := s.opts
	if c.Region != "" {
		opts.Region = c.Region
	}
	return &Server{opts: opts, store: st, pages: s.pages}, nil
}

// noteCaller tells once of callers with other keys or regions than the first:
// on AWS they would not see the same tables.
func (s *Server) noteCaller(ctx context.Context, c wire.Caller) {
	if s.firstCaller.CompareAndSwap(nil, &c) || *s.firstCaller.Load() == c || !s.otherCallers.CompareAndSwap(false, true) {
		return
	}
	s.opts.Logger.WarnContext(ctx, "clients sign with different keys or regions: they share the tables",
		slog.String("region", s.firstCaller.Load().Region), slog.String("otherRegion", c.Region))
}

// stores returns all stores.
func (s *Server) stores() []*store {
	all := []*store{s.store}
	if s.namespaces == nil {
		return all
	}
	s.namespaces.mu.Lock()
	defer s.namespaces.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.namespaces.stores)) {
		all = append(all, s.namespaces.stores[id])
	}
	return all
}

// Close stops the background work of s. It leaves Options.Conn open.
func (s *Server) Close() error {
	var errs []error
	for _, st := range s.stores() {
		errs = append(errs, st.close())
	}
	return errors.Join(errs...)
}
