package replica

import (
	"errors"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/engine"
)

// ReaderOptions say what a Reader reads. All fields are required.
type ReaderOptions struct {
	DB    *engine.DB
	Table string
	// Journal selects the records of the table's journal.
	Journal engine.JournalOptions
	// At is where it is read.
	At At
}

// Reader reads the records of a table's journal as a cluster sees them: each when it
// is visible there, in the order in which they become so; those of each origin in
// the order of their numbers. What a cluster took that is deleted, or nobody did, such
// as what garbage collection deletes, is visible at once. It is for one goroutine.
//
// While nothing is said of how the instance replicates it is a reader of the journal
// and no more; otherwise it is one for each cluster. When that changes it goes back
// to its position: records that it had returned from beyond it are returned again.
type Reader struct {
	o       ReaderOptions
	view    *View
	version uint64 // of the resources, with view

	// What this cluster took, and nobody, comes from the first source; what another
	// one took from one of its own.
	sources []*source
	remote  map[string]bool // the origins that have sources of their own
	now     int64           // when Next began
	rec     *engine.JournalRecord
	at      engine.JournalPosition
	err     error
}

// source is one origin's records.
type source struct {
	in     *engine.JournalReader
	origin string // "" for the first
	link   *link
	next   *engine.JournalRecord // read and not returned; nil if unset
	due    int64                 // when next is visible
	known  bool                  // due is
}

// NewReader returns a reader, to be closed. Errors, here or later: those of
// engine.ReadJournal, and UNAVAILABLE when the cluster has failed.
func NewReader(o ReaderOptions) (*Reader, error) {
	r := &Reader{o: o, at: engine.JournalPosition{Number: o.Journal.After}}
	if r.open(); r.err != nil {
		r.Close()
		return nil, r.err
	}
	return r, nil
}

// open opens sources at the position.
func (r *Reader) open() {
	r.Close()
	r.view, r.version, r.remote = r.o.At.Control.View(r.o.At.Instance), r.o.DB.ResourceVersion(), map[string]bool{}
	if r.err = r.view.Check(r.o.At.Cluster); r.err != nil {
		return
	}
	origins, began := []string{""}, map[string]filling(nil)
	if r.view != nil {
		clusters, err := r.o.At.Control.o.Clusters(r.o.At.Instance)
		if err != nil {
			r.err = err
			return
		}
		began = fillings(clusters)
		for _, id := range idsOf(clusters) {
			if id != r.o.At.Cluster {
				origins, r.remote[id] = append(origins, id), true
			}
		}
	}
	r.o.Journal.After = r.at.Number
	for _, id := range origins {
		in, err := r.o.DB.ReadJournal(r.o.Table, r.o.Journal)
		if err != nil {
			r.err = err
			return
		}
		s := &source{in: in, origin: id}
		if id != "" {
			s.link = r.view.between(pair{id, r.o.At.Cluster}, began)
		}
		r.sources = append(r.sources, s)
	}
}

// Stale reports whether the replication state or the clusters of the instance have
// changed, so that Next may return another result.
func (r *Reader) Stale() bool {
	return r.o.At.Control.View(r.o.At.Instance) != r.view || r.view != nil && r.o.DB.ResourceVersion() != r.version
}

// Next goes to the next visible record. It returns false when no further record is
// visible yet, or on an error.
func (r *Reader) Next() bool {
	for r.err == nil {
		r.now = r.o.At.Control.o.Now().UnixMicro() // before any source is read: what it says of them holds
		var best *source
		for _, s := range r.sources { // the first one first: its signal tells of all
			if r.peek(s); r.err != nil {
				return false
			}
			if s.next == nil || !s.known || s.link != nil && s.due > r.now && s.due > s.next.Micros {
				continue
			}
			if best == nil || s.due < best.due || s.due == best.due && s.next.Number < best.next.Number {
				best = s
			}
		}
		// A record that was committed after a change is seen with the change.
		if r.Stale() {
			r.open()
			continue
		}
		if best == nil {
			return false
		}
		r.rec, best.next = best.next, nil
		return true
	}
	return false
}

// peek reads the next record of a source.
func (r *Reader) peek(s *source) {
	for s.next == nil {
		if !s.in.Next() {
			r.err = s.in.Err()
			return
		}
		rec := s.in.Record()
		if s.origin != rec.Origin && (s.origin != "" || r.remote[rec.Origin]) {
			continue
		}
		due, known := rec.Micros, true
		if s.link != nil {
			due, known = s.link.due(rec.Number, rec.Micros)
			due = max(due, rec.Micros)
		}
		s.next, s.due, s.known = rec, max(s.due, due), known
	}
}

// Record returns the record that Next went to. It is valid until Next is called.
func (r *Reader) Record() *engine.JournalRecord { return r.rec }

// Position returns a place so that all records before it were returned, and a time
// that none to come was committed before.
func (r *Reader) Position() engine.JournalPosition {
	var at engine.JournalPosition
	for i, s := range r.sources {
		is := s.in.Position()
		switch {
		case s.next != nil:
			is = engine.JournalPosition{Number: s.next.Number - 1, Micros: s.next.Micros}
		case s.link != nil:
			is.Micros = min(is.Micros, s.link.clear(r.now))
		}
		if i == 0 {
			at = is
		}
		at = engine.JournalPosition{Number: min(at.Number, is.Number), Micros: min(at.Micros, is.Micros)}
	}
	r.at = engine.JournalPosition{Number: max(r.at.Number, at.Number), Micros: max(r.at.Micros, at.Micros)}
	return r.at
}

// Due returns when Next may have another answer without a signal, after it returned
// false; false if it is not known.
func (r *Reader) Due() (time.Time, bool) {
	var first int64
	for _, s := range r.sources {
		if s.next != nil && s.known && (first == 0 || s.due < first) {
			first = s.due
		}
	}
	return time.UnixMicro(first), first != 0
}

// Passes returns when the time of the position will be after a time, if nothing is
// said or on its way meanwhile; false if it will not.
func (r *Reader) Passes(micros int64) (time.Time, bool) {
	at, known := micros+1, true
	for _, s := range r.sources {
		if s.link != nil {
			due, ok := s.link.clearAt(micros)
			at, known = max(at, due), known && ok
		}
	}
	return time.UnixMicro(at), known
}

// Signal returns a channel that receives a value when, after Next returned false,
// there is more in the journal.
func (r *Reader) Signal() <-chan struct{} { return r.sources[0].in.Signal() }

// Err returns why Next returned false, nil if there is nothing more yet.
func (r *Reader) Err() error { return r.err }

// Close ends the reader.
func (r *Reader) Close() {
	for _, s := range r.sources {
		s.in.Close()
	}
	r.sources = nil
}

// Consistent tells whether all clusters of an instance, as they are stored, see what
// was committed to a table up to a time. Of one that has failed nobody can tell, and one that is being created sees
// nothing.
func (v *View) Consistent(db *engine.DB, table string, clusters []*instancedef.StoredCluster, until int64, now time.Time) (bool, error) {
	ids := idsOf(clusters)
	for i, c := range clusters {
		if instancedef.Creating(c, now) || v.Failed(ids[i]) {
			return false, nil
		}
	}
	if v == nil || len(ids) < 2 {
		return true, nil
	}
	since, links := now.UnixMicro(), v.all(clusters)
	for _, l := range links {
		since = min(since, l.clear(now.UnixMicro()))
	}
	after, err := db.JournalAt(table, engine.JournalReplication, since)
	var in *engine.JournalReader
	if err == nil {
		in, err = db.ReadJournal(table, engine.JournalOptions{Reason: engine.JournalReplication, After: after})
	}
	switch {
	case errors.Is(err, engine.ErrNoJournal):
		return true, nil // nothing was written since something was said
	case errors.Is(err, engine.ErrJournalTrimmed):
		return false, nil // on its way for longer than it was kept
	case err != nil:
		return false, err
	}
	defer in.Close()
	for in.Next() {
		rec := in.Record()
		if rec.Micros > until {
			return true, nil
		}
		for _, to := range ids {
			l := links[pair{rec.Origin, to}]
			if l == nil {
				continue
			}
			if due, known := l.due(rec.Number, rec.Micros); !known || due > now.UnixMicro() {
				return false, nil
			}
		}
	}
	return true, in.Err()
}
