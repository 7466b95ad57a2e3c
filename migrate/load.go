package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// job is one table on its way: its source, its mapping and what the checking
// pass found.
type job struct {
	source  *source.Table
	mapping *layout.Mapping
	micros  int64 // timestamp of cells without one of their own
	report  report.TableReport
	indexes []*layout.Index

	// What the tables must hold, known after the checking pass.
	cells   extsort.Bag            // of the base table
	items   extsort.Bag            // of the items
	index   map[string]extsort.Bag // of the index tables, by id
	options Options
	letters *deadLetters // nil: what cannot be loaded is an error
	// failures is where items that cannot be laid out are told; nil: they are errors
	// too.
	failures *report.Report
	refused  []int64 // the numbers of the items that are left out, ascending

	lintedItems int64
	expired     int64 // items whose time to live is over

	wrote func(table string, e writeEntry) // is told of what Bigtable took; nil but where that is a failure

	losses losses // what garbage collection would take, known after the comparison
	same   bool   // the comparison found no difference
	// collected says that the table has been without its garbage since then.
	collected bool

	warnings []string // of the inference, or that a given mapping may not be meant for the table
}

// Load writes a source into Bigtable as its mappings say, and the rows of the
// indexes that they lay out: [Prepare], then [Prepared.Load]. At last it notes in
// _migration_schema how the tables are to be read. It reads the whole
// source first: an error that is an [source.Error] or a [mapping.SpecError] says
// that nothing has been written. Loading again changes nothing. Nothing is
// compared: see [VerifySource] and [Compare].
func Load(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o Options) (*report.Report, error) {
	p, err := Prepare(ctx, src, o)
	if err != nil {
		return nil, err
	}
	return p.Load(ctx, conn)
}

// Prepared is a source that has been read and laid out, and not been written.
type Prepared struct{ run *run }

// Prepare does all of Load that needs no Bigtable: whatever is wrong with the
// source, its mappings or the checkpoint is found before a connection, or a store,
// is opened.
func Prepare(ctx context.Context, src *source.Source, o Options) (*Prepared, error) {
	o.warn = true
	r, err := prepare(ctx, src, o)
	if err != nil {
		return nil, err
	}
	if _, err := openCheckpoint(r.jobs); err != nil {
		return nil, err
	}
	return &Prepared{r}, nil
}

// Load writes what was prepared, once.
func (p *Prepared) Load(ctx context.Context, conn grpc.ClientConnInterface) (*report.Report, error) {
	r := p.run
	r.connect(conn)
	for _, j := range r.jobs { // all, before the first is written
		warning, err := j.remaps(ctx, r.b)
		if err != nil {
			return nil, err
		}
		if warning != "" {
			r.report.Warnings = append(r.report.Warnings, warning)
		}
	}
	if err := r.loadAll(ctx); err != nil {
		return nil, err
	}
	if r.options.Lint.Run {
		if err := lintTables(ctx, r, nil, nil, false, r.options); err != nil {
			return nil, err
		}
	}
	r.sum()
	return r.report, nil
}

// run is the work on the tables of a source: who acts, and the report of it.
type run struct {
	conn    grpc.ClientConnInterface
	b       *bigtable // over conn; both nil as long as none is needed
	jobs    []*job
	report  *report.Report
	options Options
}

// connect says where the tables are.
func (r *run) connect(conn grpc.ClientConnInterface) {
	r.conn, r.b = conn, newBigtable(conn, r.options)
}

// loadAll loads all jobs, from where a checkpoint says.
func (r *run) loadAll(ctx context.Context) error {
	c, err := openCheckpoint(r.jobs)
	if err != nil {
		return err
	}
	for i, j := range r.jobs {
		err := r.report.Check("load", j.report.Target, func() (string, error) {
			// First, so that the next load knows of one that was cut off.
			if _, err := j.writeSchema(ctx, r.b); err != nil {
				return "", err
			}
			err := j.load(ctx, r.b, c, i)
			return phrase.Counted(j.report.Items, "item"), err
		})
		if err != nil {
			return err
		}
	}
	r.report.Warnings = append(r.report.Warnings, c.lost...)
	return c.remove()
}

// loadAfresh is load without a checkpoint.
func (j *job) loadAfresh(ctx context.Context, b *bigtable) error {
	return j.load(ctx, b, &checkpoint{state: checkpointState{Tables: make([]checkpointTable, 1)}}, 0)
}

// prepare finds the mapping of each table and checks all of the source.
func prepare(ctx context.Context, src *source.Source, o Options) (*run, error) {
	o = o.normalized()
	if len(src.Tables) == 0 {
		return nil, source.Damaged(source.Unrecognized, source.Position{File: src.Path}, nil, "the source has no table")
	}
	r := report.New(o.MaxDifferences)
	r.Fixture, r.Source, r.Format, r.Compared = o.fixture, src.Path, src.Format, !o.warn
	var jobs []*job
	budget := o.held
	for _, t := range src.Tables {
		t = t.Held(&budget)
		t.Lenient = o.DeadLetter != nil
		j, err := newJob(ctx, src, t, o)
		if err != nil {
			return nil, err
		}
		if o.DeadLetter != nil {
			j.letters = &deadLetters{o.DeadLetter, r}
		}
		if o.judges {
			j.failures = r
		}
		for _, other := range jobs {
			for _, target := range other.targets() {
				if slices.Contains(j.targets(), target) {
					return nil, source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil,
						"tables %s and %s would both be written to Bigtable table %s", other.source.Name, t.Name, target)
				}
			}
		}
		r.Warnings = append(r.Warnings, j.warnings...)
		jobs = append(jobs, j)
	}
	err := r.Check("input", "", func() (string, error) {
		for _, j := range jobs {
			warnings, err := j.examine(ctx)
			if err != nil {
				return "", err
			}
			r.Warnings = append(r.Warnings, warnings...)
			j.describe()
			if spec := j.mapping.Spec(); spec != nil {
				text, err := spec.YAML()
				if err != nil {
					return "", fmt.Errorf("writing the mapping of table %s: %w", j.source.Name, err)
				}
				j.report.Mapping = string(text)
			}
		}
		detail := src.Format + ", every item read"
		letters, leftOut := int64(0), int64(0)
		for _, j := range jobs {
			letters, leftOut = letters+j.report.DeadLetters, leftOut+j.report.LeftOut
		}
		if letters > 0 {
			detail = fmt.Sprintf("%s, %s not loaded: see the dead letters", src.Format, phrase.Counted(letters, "item"))
		}
		if leftOut > 0 {
			detail += fmt.Sprintf(", %s left out: the mapping cannot lay them out", phrase.Counted(leftOut, "item"))
		}
		if src.Integrity != "" {
			detail += "; checked: " + src.Integrity
		}
		return detail, nil
	})
	if err != nil {
		return nil, err
	}
	if !o.warn && !o.AllowEmpty && !slices.ContainsFunc(jobs, func(j *job) bool { return j.report.Items > 0 || len(j.refused) > 0 }) {
		return nil, source.Damaged(source.SourceEmpty, source.Position{File: src.Path}, nil, "the source has no items: nothing would be verified")
	}
	return &run{jobs: jobs, report: r, options: o}, nil
}

func newJob(ctx context.Context, src *source.Source, t *source.Table, o Options) (*job, error) {
	j := &job{source: t, options: o, report: report.TableReport{Name: t.Name, Choices: []infer.Choice{}, Rules: []report.RuleRows{}, Sidecar: []report.SidecarCells{}, Accepted: []report.AcceptedLoss{}, Phases: []report.Phase{}}}
	for _, m := range o.Mappings {
		if m.SourceTable() == t.Name || len(o.Mappings) == 1 && len(src.Tables) == 1 {
			j.mapping = (*layout.Mapping)(m)
		}
	}
	switch {
	case j.mapping == nil && len(o.Mappings) > 0:
		return nil, source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil, "no mapping is for table %s", t.Name)
	case j.mapping == nil:
		o.Progress(source.Progress{Table: t.Name, Phase: "inferring", Total: t.Declared})
		done := j.timed("inferring")
		found, err := infer.Table(ctx, t, o.inference())
		if err != nil {
			return nil, err
		}
		done(found.Items)
		j.mapping, j.report.Choices, j.warnings = (*layout.Mapping)(found.Mapping), found.Choices, found.Warnings
	default:
		if err := j.adopt(src); err != nil {
			return nil, err
		}
	}
	j.timestamp()
	j.indexes = j.mapping.Indexes()
	j.report.Target = j.mapping.TargetTable()
	return j, nil
}

// adopt checks a given mapping against the table.
func (j *job) adopt(src *source.Source) error {
	m, t := j.mapping, j.source
	at := source.Position{File: src.Path}
	if declared := t.Key; declared.Hash.Name != "" {
		if !keyMatches(declared.Hash, m.Key().Hash) || !keyMatches(declared.Range, m.Key().Range) {
			return source.Damaged(source.MappingRefused, at, nil, "the key of table %s is %s (%s), its mapping says %s", t.Name, source.KeyText(declared), t.KeyFrom, source.KeyText(m.Key()))
		}
	}
	if m.SourceTable() != "" && src.Asked != "" && src.Asked != m.SourceTable() {
		return source.Damaged(source.MappingRefused, at, nil, "table %s was asked for, the mapping is for table %s", src.Asked, m.SourceTable())
	}
	// From here on the mapping's key is the declared one.
	keyed := *t
	keyed.Key = m.Key()
	if m.SourceTable() != "" {
		keyed.Name = m.SourceTable()
	}
	if t.Named && t.Name != keyed.Name {
		j.warnings = append(j.warnings, otherTable(src, t, m))
	}
	if spec := m.Spec(); spec != nil && t.Types != nil {
		for name, schema := range spec.Source.Schema {
			t.Types[name] = schema.Type
		}
	}
	j.source, j.report.Name = &keyed, keyed.Name
	return nil
}

// otherTable warns of items that the mapping, by its name, is not for: an export
// of the staging table beside the mapping of the production one, say.
func otherTable(src *source.Source, t *source.Table, m *layout.Mapping) string {
	at := ""
	if spec := m.Spec(); spec != nil {
		if file, line, column := spec.Position("source.table"); line > 0 {
			at = fmt.Sprintf(" (%s:%d:%d)", file, line, column)
		}
	}
	return fmt.Sprintf("table %s: %s says that its items are of table %s, the mapping is for table %s%s: make sure that it is the right input",
		m.SourceTable(), src.Path, t.Name, m.SourceTable(), at)
}

// keyMatches compares a declared key attribute, whose type may be unknown.
func keyMatches(declared, mapped layout.KeyAttr) bool {
	return declared.Name == mapped.Name && (declared.Type == attr.Absent || declared.Type == mapped.Type)
}

// timestamp decides on the time of cells without one of their own.
func (j *job) timestamp() {
	chosen, why := fallbackTime, "neither the mapping nor the input gives a time; the current one would differ from run to run"
	if us, ok := j.mapping.ImportTimeMicros(); ok {
		chosen, why = time.UnixMicro(us).UTC(), "set by the mapping"
	} else if t := j.source.ExportTime; !t.IsZero() {
		chosen, why = t.UTC(), "the export's exportTime"
	}
	j.micros = micros(chosen)
	j.report.Choices = append(j.report.Choices, infer.Choice{What: "timestamp", Chosen: chosen.Format("2006-01-02T15:04:05.000Z07:00"), Why: why})
}

// keyJSON is the canonical JSON of an item's key.
func (j *job) keyJSON(item attr.Item) string {
	key := attr.Item{}
	for _, k := range []layout.KeyAttr{j.mapping.Key().Hash, j.mapping.Key().Range} {
		if v, ok := item[k.Name]; ok {
			key[k.Name] = v
		}
	}
	return string(attr.AppendItemJSON(nil, key))
}

// targets are the Bigtable tables that the job writes: that of the items, and
// those of the indexes.
func (j *job) targets() []string {
	tables := []string{j.mapping.TargetTable()}
	for _, x := range j.mapping.Indexes() {
		tables = append(tables, x.TargetTable())
	}
	return tables
}

// sum fills in the totals.
func (r *run) sum() {
	r.report.Items, r.report.Rows, r.report.Exceptions, r.report.Tables = 0, 0, 0, r.report.Tables[:0]
	for _, j := range r.jobs {
		r.report.Items += j.report.Items
		r.report.Rows += j.report.Rows
		r.report.Exceptions += j.report.Exceptions
		r.report.Tables = append(r.report.Tables, j.report)
	}
}

// timed begins to take the time of a phase; done ends it.
func (j *job) timed(phase string) (done func(items int64)) {
	if j.options.Stopwatch == nil {
		return func(int64) {}
	}
	start := j.options.Stopwatch()
	return func(items int64) {
		j.report.AddPhase(phase, items, j.options.Stopwatch()-start)
	}
}
