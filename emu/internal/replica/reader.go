package replica

import (
	"errors"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/engine"
)

// ReaderOptions configures a Reader. All fields are required.
type ReaderOptions struct {
	DB    *engine.DB
	Table string
	// Journal selects which records of the table's journal are read.
	Journal engine.JournalOptions
	// At identifies the cluster through which the journal is read.
	At At
}

// Reader reads the records of a table's journal in the order in which they become visible in a
// cluster. Records of one origin stay in the order of their numbers. Records of deleted clusters,
// and records without an origin such as those of garbage collection, are visible at once. A Reader
// is not safe for concurrent use.
//
// For an instance whose replication was never configured, it reads the journal once; otherwise once
// per cluster. When the replication state changes, the reader returns to its Position, and returns
// records after that position again.
type Reader struct {
	o       ReaderOptions
	view    *View
	version uint64 // version of the resources at which view was read

	// The first source has the records of this cluster and those without an
	// origin. Each other cluster has its own source.
	sources []*source
	remote  map[string]bool // origins with their own source
	now     int64           // when the current step of Next began
	rec     *engine.JournalRecord
	at      engine.JournalPosition
	err     error
}

// source reads the records of one origin.
type source struct {
	in     *engine.JournalReader
	origin string // "" for the first source
	link   *link
	next   *engine.JournalRecord // read ahead; nil if unset
	due    int64                 // when next becomes visible
	known  bool                  // whether due is known
}

// NewReader returns a reader, which the caller must close. It and Reader.Err return the errors of
// engine.ReadJournal, and UNAVAILABLE if the cluster has failed.
func NewReader(o ReaderOptions) (*Reader, error) {
	r := &Reader{o: o, at: engine.JournalPosition{Number: o.Journal.After}}
	if r.open(); r.err != nil {
		r.Close()
		return nil, r.err
	}
	return r, nil
}

// open opens the sources at the current position.
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

// Next advances to the next visible record. It returns false on an error, or if
// no further record is visible yet.
func (r *Reader) Next() bool {
	for r.err == nil {
		r.now = r.o.At.Control.o.Now().UnixMicro() // read before the sources, so that their results are valid for it
		var best *source
		for _, s := range r.sources { // in order: the signal of the first source covers all
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
		// Records committed after a change must be read with the change.
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

// Record returns the current record. It is valid until the next call of Next.
func (r *Reader) Record() *engine.JournalRecord { return r.rec }

// Position returns the latest position before which all records were returned. No later record was
// committed before the time of the position.
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

// Due returns the time at which Next, after it returned false, may have a new result without a
// signal. It returns false if that time is unknown.
func (r *Reader) Due() (time.Time, bool) {
	var first int64
	for _, s := range r.sources {
		if s.next != nil && s.known && (first == 0 || s.due < first) {
			first = s.due
		}
	}
	return time.UnixMicro(first), first != 0
}

// Passes returns when the time of the position will exceed micros if the replication state does not
// change and no record is pending. It returns false if this will not happen.
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

// Signal returns a channel that receives a value when the journal has more
// records after Next returned false.
func (r *Reader) Signal() <-chan struct{} { return r.sources[0].in.Signal() }

// Err returns the error that ended Next, or nil while the next record is pending.
func (r *Reader) Err() error { return r.err }

// Close releases the resources of the reader.
func (r *Reader) Close() {
	for _, s := range r.sources {
		s.in.Close()
	}
	r.sources = nil
}

// Consistent reports whether all stored clusters of an instance see the commits to a table up to
// and including the time until, in microseconds. It returns false if any cluster has failed or is
// being created.
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
		return true, nil // no writes since the instance was configured
	case errors.Is(err, engine.ErrJournalTrimmed):
		return false, nil // records were pending for longer than their retention
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
