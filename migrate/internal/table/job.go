package table

import (
	"context"
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Job is the data of one table: its source, its mapping and what is known of it.
type Job struct {
	Source  *source.Table
	whole   *source.Table // of which Source may be a part
	Mapping *layout.Mapping
	Micros  int64 // timestamp of cells without one of their own
	Indexes []*secondary.Index
	Options Options

	Report   report.TableReport
	Warnings []string       // of the inference, or that a given mapping may not be meant for the table
	Letters  *DeadLetters   // nil: an item that cannot be loaded is an error
	failures *report.Report // of items that cannot be laid out; nil: they are errors

	// What the examination found.

	Wanted  Contents
	Refused []int64 // the numbers of the items that are left out, ascending

	now  time.Time // by which the time to live is judged; zero: it is not
	left int64     // items that leavesOut left out of the last pass

	// Of a part: what its items ask for in each range of the tables, and the joiner that
	// its keys alone could have, where the mapping leaves it open.

	Ranges parts.Ranges
	Joiner string
}

// Contents are sums over what the tables of a job must hold.
type Contents struct {
	Cells extsort.Bag            // of the table of the items
	Items extsort.Bag            // in that table
	Index map[string]extsort.Bag // cells of the index tables, by table id
}

// NewJob finds the mapping of a table, or infers it.
func NewJob(ctx context.Context, src *source.Source, t *source.Table, o Options) (*Job, error) {
	j := &Job{Source: t, Options: o, Report: report.TableReport{Name: t.Name, Choices: []infer.Choice{}, Rules: []report.RuleRows{}, Sidecar: []report.SidecarCells{}, Accepted: []report.AcceptedLoss{}, Phases: []report.Phase{}, Refused: []report.RefusedItems{}}}
	if o.Now != nil {
		j.now = o.Now()
	}
	for _, m := range o.Mappings {
		if m.SourceTable() == t.Name || len(o.Mappings) == 1 && len(src.Tables) == 1 {
			j.Mapping = (*layout.Mapping)(m)
		}
	}
	switch {
	case j.Mapping == nil && len(o.Mappings) > 0:
		return nil, source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil, "no mapping is for table %s", t.Name)
	case j.Mapping == nil:
		o.Progress(source.Progress{Table: t.Name, Phase: "inferring", Total: t.Declared})
		done := j.Timed("inferring")
		found, err := infer.Table(ctx, t, o.Inference())
		if err != nil {
			return nil, err
		}
		done(found.Items)
		j.Mapping, j.Report.Choices, j.Warnings = (*layout.Mapping)(found.Mapping), found.Choices, found.Warnings
	default:
		if err := adopt(j, src); err != nil {
			return nil, err
		}
	}
	j.timestamp()
	j.Indexes = j.Mapping.Indexes()
	j.Report.Target = j.Mapping.TargetTable()
	return j, nil
}

// adopt checks a given mapping against the table.
func adopt(j *Job, src *source.Source) error {
	m, t := j.Mapping, j.Source
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
	keyed := t.As(m.SourceTable(), m.Key())
	if t.Named && t.Name != keyed.Name {
		j.Warnings = append(j.Warnings, otherTable(src, t, m))
	}
	if spec := m.Spec(); spec != nil {
		for name, schema := range spec.Types() {
			keyed.SetColumnType(name, schema.Type)
		}
	}
	j.Source, j.Report.Name = keyed, keyed.Name
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
func keyMatches(declared, mapped lens.KeyAttr) bool {
	return declared.Name == mapped.Name && (declared.Type == attr.Absent || declared.Type == mapped.Type)
}

// timestamp decides on the time of cells without one of their own.
func (j *Job) timestamp() {
	chosen, why := FallbackTime, "neither the mapping nor the input gives a time; the current one would differ from run to run"
	if us, ok := j.Mapping.ImportTimeMicros(); ok {
		chosen, why = time.UnixMicro(us).UTC(), "set by the mapping"
	} else if t := j.Source.FullTime; !t.IsZero() {
		chosen, why = t.UTC(), "the full export's exportTime: what its incremental exports did not change keeps its time"
	} else if t := j.Source.ExportTime; !t.IsZero() {
		chosen, why = t.UTC(), "the export's exportTime"
	}
	j.Micros = Micros(chosen)
	j.Report.Choices = append(j.Report.Choices, infer.Choice{What: "timestamp", Chosen: chosen.Format("2006-01-02T15:04:05.000Z07:00"), Why: why})
}

// KeyJSON returns the canonical JSON of an item's key.
func (j *Job) KeyJSON(item attr.Item) string {
	return string(attr.AppendItemJSON(nil, j.Mapping.Key().KeyOf(item)))
}

// Targets returns the Bigtable tables of the job: that of the items first, then those of the
// indexes.
func (j *Job) Targets() []string {
	tables := []string{j.Mapping.TargetTable()}
	for _, x := range j.Mapping.Indexes() {
		tables = append(tables, x.TargetTable())
	}
	return tables
}

// Timed starts to measure the time of a phase; done ends it.
func (j *Job) Timed(phase string) (done func(items int64)) {
	if j.Options.Stopwatch == nil {
		return func(int64) {}
	}
	start := j.Options.Stopwatch()
	return func(items int64) {
		j.Report.AddPhase(phase, items, j.Options.Stopwatch()-start)
	}
}
