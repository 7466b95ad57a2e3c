package replica

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/btree"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/due"
	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// RowsOptions configures NewRows.
type RowsOptions struct {
	DB      *engine.DB
	Control *Control
	// MaxBytes is the maximum size of all rows that are not yet visible
	// everywhere. Default: 256 MiB.
	MaxBytes int64
}

// Rows computes the rows that each cluster sees. The table holds the result of applying all records
// in commit order, which all clusters see in the end. If a record of a row is not yet visible
// everywhere, Rows also keeps an image of the row before that record, and the records since, in
// memory. A cluster sees the image with the visible records applied to it. Once all records of a
// row are visible everywhere, Rows forgets the row, and all clusters see the table's row.
//
// The commit of the first record after an image stores the image on disk, so that the journal's
// records can be applied to it after a restart. The only background work frees space; see
// [Rows.Due].
//
// Rows is safe for concurrent use.
type Rows struct {
	o RowsOptions

	mu       sync.Mutex
	tables   map[uint32]*table
	restores uint64 // the store's Restores when tables were made
	bytes    int64  // size of images and records
}

// NewRows returns a Rows over a store.
func NewRows(o RowsOptions) *Rows {
	o.MaxBytes = cmp.Or(o.MaxBytes, 256<<20)
	return &Rows{o: o, tables: map[uint32]*table{}, restores: o.DB.Restores()}
}

// Clear removes the images that an earlier process stored. It is called while no instance is
// configured, when all records are visible everywhere.
func (r *Rows) Clear(ctx context.Context) error {
	if images, err := r.o.DB.Resources(imagePrefix); err != nil || len(images) == 0 {
		return err
	}
	return r.o.DB.UpdateCatalog(ctx, func(tx *engine.CatalogTx) error {
		return tx.DeleteResources(imagePrefix, imagePrefix+"\xff")
	})
}

// table holds the pending rows of a table.
type table struct {
	all            *Rows
	id             uint32
	name, instance string

	// mu is locked after the locks of rows, and before the store's view.
	mu     sync.Mutex
	loaded bool
	rows   *btree.BTreeG[*row]
	queues map[string][]*record // origin -> records that are not visible everywhere, by number
	stale  []string             // rows with an obsolete stored image

	// cuts holds, per pair of clusters, a number: records of the first cluster
	// with lower numbers are visible in the second.
	cuts     map[pair]uint64
	view     *View
	version  uint64                       // version of the resources at which stored was read
	stored   []*instancedef.StoredCluster // clusters of the instance
	clusters []string                     // their ids
	links    map[pair]*link
	leaving  string // the cluster that is being deleted
}

// row is a pending row. Rows are replaced, not changed, except for pending and
// seen.
type row struct {
	key     []byte
	image   cells
	since   uint64    // the first number not in the image
	records []*record // by number
	base    int       // number of records folded into the image
	state   *rowState // shared by all versions of the row
}

// rowState is shared by the versions of a row.
type rowState struct {
	pending int // number of records that are not visible everywhere; under table.mu

	mu   sync.Mutex
	seen map[string]seen // by cluster
}

// seen caches the cells that a cluster last saw in a row: the image with the visible records
// applied. count is their number, including those folded into the image; number is the highest
// record number among them.
type seen struct {
	count  int
	number uint64
	cells  cells
}

// imagePrefix is the prefix of the names of stored images.
const imagePrefix = "replicated/"

// imageName returns the name of a row's image. For row "", it is the prefix of
// a table's images.
func imageName(table uint32, row []byte) string {
	return imagePrefix + hex.EncodeToString(binary.BigEndian.AppendUint32(nil, table)) + "/" + string(row)
}

// table returns a locked and refreshed table, which the caller unlocks. It
// returns nil if everything is visible everywhere.
func (r *Rows) table(t *engine.Table, instance string) (*table, error) {
	if r.o.Control.View(instance) == nil {
		return nil, nil //nolint:nilnil // no records are pending
	}
	r.mu.Lock()
	if restores := r.o.DB.Restores(); restores != r.restores {
		r.tables, r.restores, r.bytes = map[uint32]*table{}, restores, 0
	}
	x := r.tables[t.ID]
	if x == nil {
		x = &table{
			all: r, id: t.ID, instance: instance, cuts: map[pair]uint64{}, queues: map[string][]*record{},
			rows: btree.NewG(16, func(a, b *row) bool { return string(a.key) < string(b.key) }),
		}
		r.tables[t.ID] = x
	}
	r.mu.Unlock()
	x.mu.Lock()
	x.name = t.Name
	err := x.load(t)
	if err == nil {
		err = x.refresh()
	}
	if err != nil {
		x.mu.Unlock()
		return nil, err
	}
	return x, nil
}

// grow adds to the memory in use, or returns an error above MaxBytes.
func (r *Rows) grow(bytes int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > 0 && r.bytes+bytes > r.o.MaxBytes {
		return refusal.New(codes.ResourceExhausted, "Changes that wait for replication take up %d bytes; the limit is %d. "+
			"Let them arrive: advance the clock, end pauses, recover failed clusters, or choose a shorter lag.", r.bytes+bytes, r.o.MaxBytes)
	}
	r.bytes += bytes
	return nil
}

// shrink subtracts from the memory in use.
func (r *Rows) shrink(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes = max(0, r.bytes-bytes)
}

// refresh processes the records that became visible.
func (x *table) refresh() error {
	c := x.all.o.Control
	view, version := c.View(x.instance), x.all.o.DB.ResourceVersion()
	if x.links == nil || x.view != view || x.version != version {
		if x.leaving == "" || x.stored == nil {
			clusters, err := c.o.Clusters(x.instance)
			if err != nil && status.Code(err) != codes.NotFound { // a deleted instance has no clusters
				return err
			}
			x.joined(clusters)
		}
		x.view, x.version, x.links = view, version, map[pair]*link{}
		if view != nil {
			x.links = view.all(x.stored)
		}
	}
	now := c.o.Now().UnixMicro()
	for from, queue := range x.queues {
		all := ^uint64(0) // the cut of a pair that sees everything
		for _, to := range x.clusters {
			if to == from {
				continue
			}
			p := pair{from, to}
			x.advance(p, queue, now)
			all = min(all, x.cuts[p])
		}
		if !slices.Contains(x.clusters, from) {
			all = ^uint64(0)
		}
		n := 0
		for ; n < len(queue) && queue[n].number < all; n++ {
			x.arrived(queue[n])
			queue[n] = nil
		}
		if n == len(queue) {
			delete(x.queues, from)
		} else {
			x.queues[from] = queue[n:]
		}
	}
	return nil
}

// joined processes added and removed clusters. An added cluster begins with the records of each
// origin that all previous clusters see, even if an earlier cluster of its name saw more.
func (x *table) joined(clusters []*instancedef.StoredCluster) {
	same := func(a, b *instancedef.StoredCluster) bool {
		return a.Message.GetName() == b.Message.GetName() && bytes.Equal(a.Note, b.Note)
	}
	if slices.EqualFunc(x.stored, clusters, same) {
		return
	}
	stays := map[string]bool{}
	for _, c := range clusters {
		stays[resname.Last(c.Message.GetName())] = slices.ContainsFunc(x.stored, func(o *instancedef.StoredCluster) bool { return same(c, o) })
	}
	ids, cuts := idsOf(clusters), map[pair]uint64{}
	for _, from := range ids {
		var arrived []uint64
		for _, to := range x.clusters {
			if to != from {
				arrived = append(arrived, x.cuts[pair{from, to}])
			}
		}
		for _, to := range ids {
			p := pair{from, to}
			if stays[to] {
				cuts[p] = x.cuts[p]
			} else if len(arrived) > 0 {
				cuts[p] = slices.Min(arrived)
			}
		}
	}
	x.stored, x.clusters, x.cuts = clusters, ids, cuts
	x.rows.Ascend(func(r *row) bool {
		r.state.forget(func(cluster string) bool { return !stays[cluster] })
		return true
	})
}

// forget removes the cached views of removed clusters.
func (s *rowState) forget(gone func(cluster string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.seen, func(cluster string, _ seen) bool { return gone(cluster) })
}

// advance moves the cut of a pair past the visible records of a queue.
func (x *table) advance(p pair, queue []*record, now int64) {
	cut := x.cuts[p]
	i, _ := slices.BinarySearchFunc(queue, cut, func(r *record, n uint64) int { return cmp.Compare(r.number, n) })
	for ; i < len(queue); i++ {
		r := queue[i]
		if l := x.links[p]; l != nil && !l.visible(r.number, r.micros, now) {
			x.cuts[p] = r.number
			return
		}
		x.cuts[p] = r.number + 1
	}
}

// visible reports whether a record is visible at now, provided that all earlier
// records of its origin are.
func (l *link) visible(number uint64, micros, now int64) bool {
	due, known := l.due(number, micros)
	return known && (due <= now || due <= micros)
}

// arrived removes the row of a record that is visible everywhere, if the row
// has no other pending records.
func (x *table) arrived(rec *record) {
	r, ok := x.rows.Get(rec.row)
	if !ok || r.state != rec.row.state {
		return
	}
	if r.state.pending--; r.state.pending <= 0 {
		x.forget(r)
	}
}

// forget removes a row. All clusters then see the stored row.
func (x *table) forget(r *row) {
	x.rows.Delete(r)
	x.stale = append(x.stale, string(r.key))
	x.all.shrink(r.size())
}

func (r *row) size() int64 {
	size := r.image.size() + int64(len(r.key))
	for _, rec := range r.records {
		size += rec.size()
	}
	return size
}

// settled reports whether a record is visible everywhere.
func (x *table) settled(rec *record) bool {
	if !slices.Contains(x.clusters, rec.origin) {
		return true
	}
	for _, to := range x.clusters {
		if to != rec.origin && x.cuts[pair{rec.origin, to}] <= rec.number {
			return false
		}
	}
	return true
}

// enqueue adds a record to the queue of its origin, unless the record is visible everywhere, and
// reports whether it did.
func (x *table) enqueue(rec *record) (pending bool) {
	queue := x.queues[rec.origin]
	if len(queue) == 0 {
		now, all := x.all.o.Control.o.Now().UnixMicro(), true
		for _, to := range x.clusters {
			if l := x.links[pair{rec.origin, to}]; l != nil && !l.visible(rec.number, rec.micros, now) {
				all = false
			}
		}
		if all || !slices.Contains(x.clusters, rec.origin) {
			for _, to := range x.clusters {
				p := pair{rec.origin, to}
				x.cuts[p] = max(x.cuts[p], rec.number+1)
			}
			return false
		}
	}
	i, _ := slices.BinarySearchFunc(queue, rec.number, func(r *record, n uint64) int { return cmp.Compare(r.number, n) })
	x.queues[rec.origin] = slices.Insert(queue, i, rec)
	return true
}

// add adds a record to its row and returns the new row. image is used only if the row is not
// pending yet, and must be set then.
func (x *table) add(key []byte, rec *record, image *row) *row {
	r, ok := x.rows.Get(&row{key: key})
	if !ok {
		r = image
	}
	next := *r
	next.records = append(r.records, rec)
	if n := len(r.records); n > 0 && r.records[n-1].number > rec.number {
		next.records = slices.Clone(next.records)
		slices.SortStableFunc(next.records, func(a, b *record) int { return cmp.Compare(a.number, b.number) })
	}
	rec.row = &row{key: next.key, state: next.state}
	if x.enqueue(rec) {
		next.state.pending++
	}
	x.rows.ReplaceOrInsert(&next)
	return &next
}

// compact folds the leading records that are visible everywhere into the image of a row, if they
// are many or old. It returns the new row and whether it did, else r.
func (x *table) compact(r *row) (*row, bool) {
	const much = 16
	n := 0
	for n < len(r.records) && x.settled(r.records[n]) {
		n++
	}
	now := x.all.o.Control.o.Now()
	old := n > 0 && now.UnixMicro()-r.records[0].micros > (x.view.Keep(now)-spare/2).Microseconds()
	if !old && (n < much || n < len(r.records)/2) {
		return r, false
	}
	next := *r
	next.image = slices.Clone(r.image)
	for _, rec := range r.records[:n] {
		next.image = rec.onto(next.image)
	}
	next.base, next.since, next.records = r.base+n, r.records[n-1].number+1, slices.Clone(r.records[n:])
	x.all.shrink(r.size() - next.size())
	x.rows.ReplaceOrInsert(&next)
	return &next, true
}

// sight determines which records a cluster sees: of each other cluster, those with numbers below
// the cut.
type sight struct {
	cluster string
	cuts    map[string]uint64 // by origin
}

func (x *table) sight(cluster string) sight {
	s := sight{cluster, make(map[string]uint64, len(x.clusters))}
	for _, from := range x.clusters {
		if from != cluster {
			s.cuts[from] = x.cuts[pair{from, cluster}]
		}
	}
	return s
}

// sees reports whether a record is visible. Records without an existing origin
// always are.
func (s sight) sees(rec *record) bool {
	cut, remote := s.cuts[rec.origin]
	return !remote || rec.number < cut
}

// of returns the cells of a row that the cluster sees. Callers must not change them, because they
// are cached.
func (s sight) of(r *row) cells {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	last := r.state.seen[s.cluster]
	count, newer := r.base, 0
	for _, rec := range r.records {
		if s.sees(rec) {
			if count++; rec.number > last.number {
				newer++
			}
		}
	}
	if last.cells != nil && last.count == count && newer == 0 {
		return last.cells
	}
	next := seen{count: count, number: r.since - 1, cells: append(cells{}, r.image...)}
	all := true
	if last.cells != nil && last.count+newer == count && last.number >= next.number {
		all, next.number, next.cells = false, last.number, append(cells{}, last.cells...)
	}
	for _, rec := range r.records {
		if (all || rec.number > last.number) && s.sees(rec) { // a garbage collection shares the number of a record
			next.number, next.cells = rec.number, rec.onto(next.cells)
		}
	}
	if r.state.seen == nil {
		r.state.seen = map[string]seen{}
	}
	r.state.seen[s.cluster] = next
	return next.cells
}

// within returns the rows in spans, in the order of their keys or reversed.
func (x *table) within(spans []engine.Span, reverse bool) []*row {
	var out []*row
	take := func(r *row) bool {
		out = append(out, r)
		return true
	}
	if spans == nil {
		spans = []engine.Span{{}}
	}
	for _, s := range spans {
		if len(s.End) == 0 {
			x.rows.AscendGreaterOrEqual(&row{key: s.Start}, take)
		} else {
			x.rows.AscendRange(&row{key: s.Start}, &row{key: s.End}, take)
		}
	}
	if reverse {
		slices.Reverse(out)
	}
	return out
}

// load restores the pending rows after a restart or a Restore.
func (x *table) load(t *engine.Table) error {
	if x.loaded {
		return nil
	}
	db := x.all.o.DB
	images, err := db.Resources(imageName(x.id, nil))
	if err != nil {
		return err
	}
	rows := map[string]*row{}
	first := ^uint64(0)
	for _, image := range images {
		since, cs, err := decodeImage(image.Value)
		if err != nil {
			return fmt.Errorf("%w: %q", err, image.Name)
		}
		key := strings.TrimPrefix(image.Name, imageName(x.id, nil))
		rows[key] = &row{key: []byte(key), image: cs, since: since, state: &rowState{}}
		first = min(first, since)
	}
	records, err := x.recorded(t, rows, first)
	if err != nil {
		return err
	}
	if err := x.refresh(); err != nil {
		return err
	}
	x.loaded = true // no errors from here on
	for _, rec := range records {
		key := rec.row.key
		x.add(key, rec, rows[string(key)])
	}
	for key, r := range rows {
		if in, ok := x.rows.Get(r); ok && in.state.pending > 0 {
			x.all.mu.Lock()
			x.all.bytes += in.size()
			x.all.mu.Unlock()
			continue
		}
		x.rows.Delete(r)
		x.stale = append(x.stale, key)
	}
	return nil
}

// recorded reads the records of rows that follow their images from the journal. rows maps keys to
// rows, and first is the lowest of their since numbers.
func (x *table) recorded(t *engine.Table, rows map[string]*row, first uint64) (records []*record, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	after := max(first, 1) - 1
	in, err := x.all.o.DB.ReadJournal(t.Name, engine.JournalOptions{Reason: engine.JournalReplication, After: after})
	if errors.Is(err, engine.ErrJournalTrimmed) { // trimmed records are visible everywhere
		in, err = x.all.o.DB.ReadJournal(t.Name, engine.JournalOptions{Reason: engine.JournalReplication, After: t.Journal[engine.JournalReplication].Since})
	}
	if errors.Is(err, engine.ErrNoJournal) || errors.Is(err, engine.ErrJournalTrimmed) || errors.Is(err, engine.ErrJournalPosition) {
		return nil, nil // no records are pending
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	for in.Next() {
		rec := in.Record()
		switch rec.Kind {
		case engine.JournalFamilyDropped:
			for _, r := range records {
				r.muts = slices.DeleteFunc(r.muts, func(m mutation) bool { return m.Family == rec.Mutations[0].Family })
			}
		case engine.JournalUser:
			if r := rows[string(rec.Row)]; r != nil && rec.Number >= r.since {
				records = append(records, &record{
					number: rec.Number, micros: rec.Micros, origin: rec.Origin, row: r, muts: bind(t, rec.Mutations),
				})
			}
		case engine.JournalGC: // each cluster collects its own cells
		}
	}
	return records, in.Err()
}

// Due implements due.Work. The work forgets the pending rows whose records are visible in every
// cluster, and removes their stored images.
func (r *Rows) Due() ([]due.Item, error) {
	var items []due.Item
	r.o.Control.tidy()
	for _, x := range r.known() {
		x.mu.Lock()
		if err := x.refresh(); err != nil {
			x.mu.Unlock()
			return nil, err
		}
		at := int64(0)
		for from, queue := range x.queues {
			last := queue[len(queue)-1]
			for _, to := range x.clusters {
				if l := x.links[pair{from, to}]; l != nil {
					if due, known := l.due(last.number, last.micros); known {
						at = max(at, due)
					}
				}
			}
		}
		if len(x.stale) > 0 && x.rows.Len() == 0 {
			at = x.all.o.Control.o.Now().UnixMicro()
		}
		if at > 0 {
			items = append(items, due.Item{At: time.UnixMicro(at), Name: x.name})
		}
		x.mu.Unlock()
	}
	return items, nil
}

func (r *Rows) known() []*table {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.tables))
}

// Run implements due.Work.
func (r *Rows) Run(ctx context.Context, i due.Item) error {
	for _, x := range r.known() {
		x.mu.Lock()
		found := x.name == i.Name
		var err error
		if found {
			err = x.refresh()
		}
		x.mu.Unlock()
		if err == nil && found {
			err = x.sweep(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// manyStale is the number of obsolete images that a table may have before a writer removes them.
const manyStale = 256

// sweep removes obsolete images.
func (x *table) sweep(ctx context.Context) error {
	x.mu.Lock()
	stale, name := x.stale, x.name
	x.stale = nil
	x.mu.Unlock()
	keys := make([][]byte, len(stale))
	for i, key := range stale {
		keys[i] = []byte(key)
	}
	for _, err := range x.all.o.DB.UpdateRows(ctx, name, keys, func(i int, tx *engine.RowTx) error {
		x.mu.Lock()
		_, again := x.rows.Get(&row{key: keys[i]})
		x.mu.Unlock()
		if again || tx.Table().ID != x.id {
			return nil
		}
		return tx.DeleteResource(imageName(x.id, keys[i]))
	}) {
		if errors.Is(err, engine.ErrTableNotFound) {
			return x.drop(ctx, stale)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drop forgets a deleted table and removes its images. If the table is
// undeleted, all its records have arrived.
func (x *table) drop(ctx context.Context, stale []string) error {
	x.mu.Lock()
	left := x.rows.Len() > 0
	if left {
		x.stale = append(x.stale, stale...)
	}
	x.mu.Unlock()
	if left {
		return nil
	}
	x.all.mu.Lock()
	delete(x.all.tables, x.id)
	x.all.mu.Unlock()
	return x.all.o.DB.UpdateCatalog(ctx, func(tx *engine.CatalogTx) error {
		if t, err := tx.Table(x.name); err == nil && t.ID == x.id {
			return nil // it was undeleted
		}
		return tx.DeleteResources(imageName(x.id, nil), imageName(x.id+1, nil))
	})
}
