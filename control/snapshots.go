package control

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/engine"
)

// Limits of snapshots.
const (
	maxSnapshots     = 32
	maxSnapshotBytes = 1 << 30
	maxNameBytes     = 128
)

// snapshots are the named snapshots. They live as long as the store.
type snapshots struct {
	mu    sync.Mutex
	named map[string]snapshot
}

type snapshot struct {
	Name  string    `json:"name"`
	Taken time.Time `json:"taken"` // by the clock of the server
	Bytes int64     `json:"bytes"`
	kept  *engine.Snapshot
}

func (s *snapshots) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, kept := range s.named {
		errs = append(errs, kept.kept.Close())
	}
	s.named = nil
	return errors.Join(errs...)
}

func (s *snapshots) list() []snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]snapshot, 0, len(s.named))
	for _, kept := range s.named {
		out = append(out, kept)
	}
	slices.SortFunc(out, func(a, b snapshot) int { return cmp.Or(a.Taken.Compare(b.Taken), cmp.Compare(a.Name, b.Name)) })
	return out
}

func (s *snapshots) get(name string) (snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.named[name]
	if !ok {
		return kept, notFound("snapshot", name, "GET "+Prefix+"snapshots lists them, POST "+Prefix+"snapshots takes one")
	}
	return kept, nil
}

func (s *snapshots) remove(name string) error {
	kept, err := s.get(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.named, name)
	s.mu.Unlock()
	return kept.kept.Close()
}

// take makes a snapshot, and replaces one with the same name.
func (s *snapshots) take(r *http.Request, l *lab.Lab, name string) (snapshot, error) {
	if name == "" || len(name) > maxNameBytes {
		return snapshot{}, badRequest("the name of a snapshot must have 1 to %d bytes", maxNameBytes)
	}
	if name == "." || name == ".." {
		return snapshot{}, badRequest("the name of a snapshot is part of URLs, so it cannot be %q", name)
	}
	kept, err := l.Snapshot(r.Context())
	if err != nil {
		return snapshot{}, err
	}
	taken := snapshot{Name: name, Taken: l.Clock().Now(), kept: kept}
	if taken.Bytes, err = kept.Bytes(); err != nil {
		return snapshot{}, errors.Join(err, kept.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, replaced := s.named[name]
	count, total := len(s.named), taken.Bytes
	for other, k := range s.named {
		if other != name {
			total += k.Bytes
		}
	}
	if !replaced && count >= maxSnapshots || total > maxSnapshotBytes {
		return snapshot{}, errors.Join(&Error{
			http.StatusConflict, "limit", fmt.Sprintf("the limit is %d snapshots and %d MiB", maxSnapshots, maxSnapshotBytes>>20),
			"DELETE " + Prefix + "snapshots/{name} removes a snapshot",
		}, kept.Close())
	}
	if s.named == nil {
		s.named = map[string]snapshot{}
	}
	s.named[name] = taken
	if replaced {
		return taken, before.kept.Close()
	}
	return taken, nil
}
