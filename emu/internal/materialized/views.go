package materialized

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/due"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/engine"
)

// Manual is the lag of views that only Refresh changes.
const Manual time.Duration = -1

// MaxLag is the longest lag.
const MaxLag = 24 * time.Hour

// spare is how long records are kept beyond the lag. A view is filled again if no read comes for longer.
const spare = time.Hour

// Options configures New.
type Options struct {
	DB     *engine.DB
	Now    func() time.Time
	Lag    time.Duration // after which a change reaches the views; or Manual
	Limits limits.Mode
}

// Views keeps the rows of all views of a store. It is safe for concurrent use.
type Views struct {
	o    Options
	mu   sync.Mutex
	open map[string]*view // by name
	// names has the names of all views in the given version of the resources.
	names   []string
	version uint64
}

// New returns the views of a store.
func New(o Options) *Views { return &Views{o: o, open: map[string]*view{}} }

const (
	// kindStored is the kind of the resource with a stored definition.
	kindStored = "materializedViewSource/"
	// kindReady is the kind of the resource with the time of Ready, as text.
	kindReady = "materializedViewReady/"
)

// stored is the stored form of a definition, in JSON: the query, and the schema of its source
// table when the view was created.
type stored struct {
	Query    string         `json:"query"`
	Table    string         `json:"table"` // the id of the source table
	Families []storedFamily `json:"families"`
	Key      []byte         `json:"key,omitempty"` // the row key schema
}

type storedFamily struct {
	Name      string `json:"name"`
	Aggregate bool   `json:"aggregate,omitempty"`
	Sketch    bool   `json:"sketch,omitempty"`
}

// rowsOf and indexOf return the names of the tables of a view.
func rowsOf(name string) string  { return engine.InternalTables + name }
func indexOf(name string) string { return engine.InternalTables + name + "/index" }

// viewsOf returns the common prefix of the names of the views of an instance.
func viewsOf(instance string) string { return instance + "/materializedViews/" }

// TableOf returns a table as SQL sees it.
func TableOf(t *engine.Table) *analysis.Table {
	s := storedOf(t)
	return s.asTable()
}

func storedOf(t *engine.Table) *stored {
	s := &stored{Table: resname.Last(t.Name)}
	for _, f := range t.Families {
		s.Families = append(s.Families, storedFamily{Name: f.Name, Aggregate: f.Aggregate != engine.NoAggregate, Sketch: f.Aggregate == engine.AggregateHLL})
	}
	if schema := admin.RowKeySchema(t); schema != nil {
		s.Key, _ = proto.Marshal(schema) // a message that was decoded
	}
	return s
}

func (s *stored) asTable() *analysis.Table {
	out := &analysis.Table{}
	if len(s.Key) > 0 {
		schema := &btapb.Type_Struct{}
		if proto.Unmarshal(s.Key, schema) == nil {
			out.Key = rowkey.New(schema)
		}
	}
	for _, f := range s.Families {
		of := value.BytesType
		if f.Aggregate {
			of = value.Int64Type
		}
		out.Families = append(out.Families, analysis.Family{Name: f.Name, Value: of, Sketch: f.Sketch})
	}
	slices.SortFunc(out.Families, func(a, b analysis.Family) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Check returns an error for a query that no view of the instance may have.
func (v *Views) Check(r admin.Catalog, instance, query string) error {
	_, err := Define(query, func(id string) (*analysis.Table, bool) {
		t, err := r.Table(resname.TablesOf(instance) + id)
		if err != nil {
			return nil, false
		}
		return TableOf(t), true
	})
	return err
}

// Create stores a view whose query Check has accepted, without rows, and begins to record the changes of its
// table.
func (v *Views) Create(tx *engine.CatalogTx, name, query string) error {
	instance := resname.First(name, 4)
	var source *engine.Table
	d, err := Define(query, func(id string) (*analysis.Table, bool) {
		t, err := tx.Table(resname.TablesOf(instance) + id)
		if err != nil {
			return nil, false
		}
		source = t
		return TableOf(t), true
	})
	if err != nil {
		return err
	}
	reading, err := v.Reading(tx, source.Name)
	if err != nil {
		return err
	}
	if v.o.Limits != limits.Off && len(reading) >= limits.MaxViewsPerTable {
		return refusal.New(codes.ResourceExhausted, "Table %s has %d materialized views, the maximum for a table.", source.Name, len(reading))
	}
	s := storedOf(source)
	s.Query = query
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	rows := engine.Table{Name: rowsOf(name), Granularity: engine.Micros}
	for _, f := range d.Families {
		rows.Families = append(rows.Families, engine.Family{Name: f.Name})
	}
	_, err = tx.CreateTable(rows)
	if err == nil {
		_, err = tx.CreateTable(engine.Table{Name: indexOf(name), Granularity: engine.Micros, Families: []engine.Family{{Name: indexFamily}}})
	}
	if err == nil {
		err = v.record(tx, source.Name)
	}
	return errors.Join(err, tx.PutResource(kindStored+name, raw))
}

// keep returns the time for which recorded changes are retained.
func (v *Views) keep() time.Duration { return max(v.o.Lag, 0) + spare }

// record makes a table record its changes, and retain them for at least v.keep().
func (v *Views) record(tx *engine.CatalogTx, table string) error {
	_, err := tx.UpdateTable(table, func(t *engine.Table) error {
		term := &t.Journal[engine.JournalViews]
		term.Keep = max(term.Keep, v.keep())
		return nil
	})
	return err
}

// Delete removes a view and its rows.
func (v *Views) Delete(tx *engine.CatalogTx, name string) error {
	s, _, err := load(tx, name)
	if err != nil {
		return err
	}
	table := resname.TablesOf(resname.First(name, 4)) + s.Table
	reading, err := v.Reading(tx, table)
	if err != nil {
		return err
	}
	if len(reading) == 1 {
		_, err = tx.UpdateTable(table, func(t *engine.Table) error {
			t.Journal[engine.JournalViews].Keep = 0
			return nil
		})
		if errors.Is(err, engine.ErrTableNotFound) { // its instance is being deleted
			err = nil
		}
	}
	if e := tx.DeleteResource(kindReady + name); !errors.Is(e, engine.ErrResourceNotFound) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, tx.DeleteTable(rowsOf(name)), tx.DeleteTable(indexOf(name)), tx.DeleteResource(kindStored+name))
}

// Reading returns the names of the views that read a table, sorted.
func (v *Views) Reading(r admin.Catalog, table string) ([]string, error) {
	found, err := r.Resources(kindStored + viewsOf(resname.First(table, 4)))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, x := range found {
		var s stored
		if err := json.Unmarshal(x.Value, &s); err != nil {
			return nil, err
		}
		if s.Table == resname.Last(table) {
			out = append(out, strings.TrimPrefix(x.Name, kindStored))
		}
	}
	return out, nil
}

// load reads the stored definition of a view, and returns it decoded and encoded.
func load(r admin.Catalog, name string) (*stored, []byte, error) {
	raw, err := r.Resource(kindStored + name)
	if errors.Is(err, engine.ErrResourceNotFound) {
		return nil, nil, refusal.NoMaterializedView(name)
	}
	s := &stored{}
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	return s, raw, err
}

// view is the state in memory of a view that this process has used.
type view struct {
	name string
	// lock is held by the goroutine that changes the rows: the holder has sent to it.
	lock chan struct{}

	// Guarded by Views.mu.
	version uint64 // of the resources, when raw was read
	id      uint32 // of the table with the rows: a view of the same name may be created again
	raw     []byte // the stored definition
	def     *Definition
	caught  time.Time // when it last caught up
	number  uint64    // of the journal at that time
	filling bool      // Populate runs
	ready   time.Time // see Ready

	// Guarded by lock.
	state  state
	totals map[string]*total // by row of the view
}

// find returns a view with its current definition.
func (v *Views) find(name string) (*view, *Definition, error) {
	version := v.o.DB.ResourceVersion()
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.open[name]
	if x != nil && x.version == version {
		return x, x.def, nil
	}
	s, raw, err := load(v.o.DB, name)
	if err != nil {
		delete(v.open, name)
		return nil, nil, err
	}
	rows, err := v.o.DB.Table(rowsOf(name))
	if err != nil {
		return nil, nil, refusal.NoMaterializedView(name)
	}
	if x == nil || x.id != rows.ID || string(x.raw) != string(raw) {
		d, err := Define(s.Query, func(id string) (*analysis.Table, bool) { return s.asTable(), id == s.Table })
		if err != nil {
			return nil, nil, err
		}
		x = &view{name: name, lock: make(chan struct{}, 1), id: rows.ID, raw: raw, def: d}
		v.open[name] = x
	}
	at, err := v.o.DB.Resource(kindReady + name)
	if err == nil {
		err = x.ready.UnmarshalText(at)
	}
	if err != nil && !errors.Is(err, engine.ErrResourceNotFound) {
		return nil, nil, err
	}
	x.version = version
	return x, x.def, nil
}

// Ready sets the time until which a new view counts as being populated.
func (v *Views) Ready(tx *engine.CatalogTx, name string, at time.Time) error {
	text, err := at.MarshalText()
	return errors.Join(err, tx.PutResource(kindReady+name, text))
}

// Populate fills a new view. Until it ends, reads of the view are rejected. It catches up again while each round
// leaves less than half of the changes of the last one; the next read applies the rest.
func (v *Views) Populate(ctx context.Context, name string) error {
	x, _, err := v.find(name)
	if err != nil {
		return refusal.Of(err)
	}
	set := func(filling bool) {
		v.mu.Lock()
		defer v.mu.Unlock()
		x.filling = filling
	}
	set(true)
	defer set(false)
	for last := uint64(math.MaxUint64); ; {
		before, _ := v.o.DB.JournalLast()
		if err := v.CatchUp(ctx, name); err != nil {
			return err
		}
		after, _ := v.o.DB.JournalLast()
		changes := after - before
		if changes < batchRows || changes > last/2 {
			return nil
		}
		last = changes
	}
}

// populating reports whether a view is being populated for the first time.
func (v *Views) populating(x *view) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return x.filling || v.o.Now().Before(x.ready)
}

// Table returns the columns of a view, as queries see them.
func (v *Views) Table(name string) (*analysis.Table, error) {
	x, d, err := v.find(name)
	if err != nil {
		return nil, err
	}
	t := d.Columns()
	t.Rows = x.id
	return t, nil
}

// Rows returns the table with the rows of a view, after CatchUp. A view that is being populated is
// rejected or, with incomplete, has the rows so far.
func (v *Views) Rows(ctx context.Context, name string, incomplete bool) (*engine.Table, error) {
	x, _, err := v.find(name)
	if err != nil {
		return nil, refusal.Of(err)
	}
	switch populating := v.populating(x); {
	case populating && !incomplete:
		return nil, refusal.UnpopulatedView(name)
	case !populating:
		if err := v.CatchUp(ctx, name); err != nil {
			return nil, err
		}
	}
	t, err := v.o.DB.Table(rowsOf(name))
	if errors.Is(err, engine.ErrTableNotFound) {
		return nil, refusal.NoMaterializedView(name)
	}
	return t, refusal.Of(err)
}

// Due implements due.Work. The work lets each view catch up before its journal is trimmed, even
// if no request reads the view.
func (v *Views) Due() ([]due.Item, error) {
	if v.o.Lag == Manual {
		return nil, nil
	}
	names, err := v.all()
	if len(names) == 0 || err != nil {
		return nil, err
	}
	var items []due.Item
	number, _ := v.o.DB.JournalLast()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range names {
		var at time.Time // at once for a view that this process has not used
		if x := v.open[name]; x != nil {
			if at = x.caught.Add(spare / 2); x.number == number {
				continue
			}
		}
		items = append(items, due.Item{At: at, Name: name})
	}
	return items, nil
}

// Run implements due.Work.
func (v *Views) Run(ctx context.Context, i due.Item) error {
	err := v.CatchUp(ctx, i.Name)
	if status.Code(err) == codes.NotFound { // it was deleted meanwhile
		return nil
	}
	return err
}

// all returns the names of all views. The caller must not change them.
func (v *Views) all() ([]string, error) {
	version := v.o.DB.ResourceVersion()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.names != nil && v.version == version {
		return v.names, nil
	}
	found, err := v.o.DB.Resources(kindStored)
	if err != nil {
		return nil, err
	}
	v.names, v.version = make([]string, len(found)), version
	for i, x := range found {
		v.names[i] = strings.TrimPrefix(x.Name, kindStored)
	}
	return v.names, nil
}

// CatchUp makes a view reflect the changes that its lag allows. A new view is filled, even with a lag.
func (v *Views) CatchUp(ctx context.Context, name string) error { return v.catchUp(ctx, name, v.o.Lag) }

// Refresh makes all views reflect all changes.
func (v *Views) Refresh(ctx context.Context) error { return v.each(ctx, 0) }

// CatchUpAll makes all views reflect the changes that their lag allows.
func (v *Views) CatchUpAll(ctx context.Context) error { return v.each(ctx, v.o.Lag) }

func (v *Views) each(ctx context.Context, lag time.Duration) error {
	names, err := v.all()
	for _, name := range names {
		if e := v.catchUp(ctx, name, lag); status.Code(e) != codes.NotFound { // it was deleted meanwhile
			err = errors.Join(err, e)
		}
	}
	return err
}

// Reset makes the views of an instance fill again, after a change of rows that no journal
// records.
func (v *Views) Reset(ctx context.Context, instance string) error {
	names, err := v.all()
	for _, name := range names {
		if !strings.HasPrefix(name, viewsOf(instance)) {
			continue
		}
		x, _, e := v.find(name)
		if e == nil {
			e = x.acquire(ctx)
		}
		if e == nil {
			e = errors.Join(e, v.setPosition(ctx, x, position{}))
			<-x.lock
		}
		err = errors.Join(err, e)
	}
	return err
}

// acquire takes the lock, unless ctx ends first. The caller releases the lock by receiving from
// it.
func (x *view) acquire(ctx context.Context) error {
	select {
	case x.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
