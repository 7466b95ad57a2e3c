package facade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// catalogPrefix begins the ids of the catalog tables of namespaces.
const catalogPrefix = store.CatalogTable + "-"

// namespaceOpener opens the store with the given catalog table, and creates the catalog if it
// does not exist.
type namespaceOpener func(ctx context.Context, catalog string) (*store.Store, error)

// namespaceSet holds the namespaces of a server: one store for each access key and region. It
// is safe for concurrent use.
type namespaceSet struct {
	open   namespaceOpener
	most   int
	mu     sync.Mutex
	stores map[string]*store.Store // by the id of the catalog table
}

// newNamespaces returns an empty set that can hold up to most namespaces.
func newNamespaces(most int, open namespaceOpener) *namespaceSet {
	return &namespaceSet{open: open, most: most, stores: map[string]*store.Store{}}
}

// catalogOf returns the id of a caller's catalog table.
func catalogOf(c wire.Caller) string {
	sum := sha256.Sum256([]byte(c.AccessKey + "\x00" + c.Region))
	return catalogPrefix + hex.EncodeToString(sum[:8])
}

// OpenAll opens all namespaces whose catalogs are among the given ids of tables.
func (n *namespaceSet) OpenAll(ctx context.Context, tables []string) error {
	for _, id := range tables {
		if !strings.HasPrefix(id, catalogPrefix) {
			continue
		}
		if _, err := n.store(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// Of returns the store of a caller, and creates it if it does not exist. It returns a
// LimitExceededException if the set is full, or an error from the opener.
func (n *namespaceSet) Of(ctx context.Context, c wire.Caller) (*store.Store, error) {
	return n.store(ctx, catalogOf(c))
}

func (n *namespaceSet) store(ctx context.Context, catalog string) (*store.Store, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if st := n.stores[catalog]; st != nil {
		return st, nil
	}
	if len(n.stores) >= n.most {
		return nil, awserr.New(awserr.CodeLimitExceeded, awserr.MsgTooManyNamespaces, n.most)
	}
	st, err := n.open(ctx, catalog)
	if err != nil {
		return nil, err
	}
	n.stores[catalog] = st
	return st, nil
}

// Stores returns all stores, sorted by the ids of their catalogs.
func (n *namespaceSet) Stores() []*store.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*store.Store
	for _, id := range slices.Sorted(maps.Keys(n.stores)) {
		all = append(all, n.stores[id])
	}
	return all
}
