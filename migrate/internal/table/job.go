package table

import (
	"context"
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Job is the data of one table: its source, its mapping, and the results of examining
// them.
type Job struct {
	Source  *source.Table
	whole   *source.Table // the full table if Source is a part of it
	Mapping *layout.Mapping
	Micros  int64 // default timestamp of cells
	Indexes []*secondary.Index
	Options Options

	Report   report.TableReport
	Warnings []string       // warnings about the inference, or about a given mapping that may be for another table
	Letters  *DeadLetters   // nil means that an item that cannot be loaded is an error
	failures *report.Report // receives the failures of items that cannot be laid out; nil: they are errors

	// Results of the examination.

	Wanted  Contents
	Refused []int64 // numbers of the excluded items, ascending

	now  time.Time // for the time to live; zero: not checked
	left int64     // items that leavesOut excluded in the last pass

	// For a part: the expected sums in each range of the tables, and the joiner that its keys
	// alone allow if the mapping leaves it open.

	Ranges parts.Ranges
	Joiner string
}

// Contents holds sums over the expected contents of a job's tables.
type Contents struct {
	Cells extsort.Bag            // cells in the table of the items
	Items extsort.Bag            // items in that table
	Index map[string]extsort.Bag // cells of the index tables, by table id, and entries of the views, by view id
}

// NewJob returns the job of a table, with its given or inferred mapping.
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
		return nil, source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil, "there is no mapping for table %s", t.Name)
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

// adopt checks the given mapping against the table, and changes j.Source to the name and the
// key in the mapping.
func adopt(j *Job, src *source.Source) error {
	m, t := j.Mapping, j.Source
	at := source.Position{File: src.Path}
	if declared := t.Key; declared.Hash.Name != "" {
		if !keyMatches(declared.Hash, m.Key().Hash) || !keyMatches(declared.Range, m.Key().Range) {
			return source.Damaged(source.MappingRefused, at, nil, "the key of table %s is %s (%s), but its mapping declares %s", t.Name, source.KeyText(declared), t.KeyFrom, source.KeyText(m.Key()))
		}
	}
	selected := t.Named && t.Name == src.Asked
	if m.SourceTable() != "" && src.Asked != "" && src.Asked != m.SourceTable() && !selected {
		return source.Damaged(source.MappingRefused, at, nil, "table %s was selected, but the mapping is for table %s", src.Asked, m.SourceTable())
	}
	// From here on the mapping's key is the declared one.
	keyed := t.As(m.SourceTable(), m.Key())
	if t.Named && t.Name != keyed.Name {
		if j.Options.Warn && !selected {
			return source.Damaged(source.MappingRefused, source.Position{}, nil, "%s: to load it nevertheless, select it (--table %s)", otherTable(src, t, m), t.Name)
		}
		j.Warnings = append(j.Warnings, otherTable(src, t, m)+": check the input")
	}
	if spec := m.Spec(); spec != nil {
		for name, schema := range spec.Types() {
			keyed.SetColumnType(name, schema.Type)
		}
	}
	j.Source, j.Report.Name = keyed, keyed.Name
	return nil
}

// otherTable returns the text of the message for a mapping that does not name the table of the
// items, such as a mapping of production for an export of staging.
func otherTable(src *source.Source, t *source.Table, m *layout.Mapping) string {
	at := ""
	if spec := m.Spec(); spec != nil {
		if file, line, column := spec.Position("source.table"); line > 0 {
			at = fmt.Sprintf(" (%s:%d:%d)", file, line, column)
		}
	}
	return fmt.Sprintf("table %s: %s has items of table %s, but the mapping is for table %s%s",
		m.SourceTable(), src.Path, t.Name, m.SourceTable(), at)
}

// keyMatches reports whether a key attribute of the mapping has the declared name and type.
// The declared type may be unknown, and then any type matches.
func keyMatches(declared, mapped attr.KeyAttr) bool {
	return declared.Name == mapped.Name && (declared.Type == attr.Absent || declared.Type == mapped.Type)
}

// timestamp chooses the default time of cells, and records the choice in the report.
func (j *Job) timestamp() {
	chosen, why := FallbackTime, "neither the mapping nor the input has a time; the current time would differ from run to run"
	if us, ok := j.Mapping.ImportTimeMicros(); ok {
		chosen, why = time.UnixMicro(us).UTC(), "set by the mapping"
	} else if t := j.Source.FullTime; !t.IsZero() {
		chosen, why = t.UTC(), "the full export's exportTime: data that has not changed since keeps its time"
	} else if t := j.Source.ExportTime; !t.IsZero() {
		chosen, why = t.UTC(), "the export's exportTime"
	}
	j.Micros = Micros(chosen)
	j.Report.Choices = append(j.Report.Choices, infer.Choice{What: "timestamp", Chosen: chosen.Format("2006-01-02T15:04:05.000Z07:00"), Why: why})
}

// describeMapping sets the mapping file in the report. An inferred one has the joiner that all
// keys allow, as infer.Table writes it.
func (j *Job) describeMapping() error {
	m := j.Mapping
	if m.Spec() == nil {
		return nil
	}
	var err error
	if len(j.Options.Mappings) == 0 {
		m, err = m.WithJoiner(m.Joiner())
	}
	var text []byte
	if err == nil {
		text, err = m.YAML()
	}
	if err != nil {
		return fmt.Errorf("writing the mapping of table %s: %w", j.Source.Name, err)
	}
	j.Report.Mapping = string(text)
	return nil
}

// KeyJSON returns the key of an item as canonical JSON.
func (j *Job) KeyJSON(item attr.Item) string {
	return string(attr.AppendItemJSON(nil, j.Mapping.Key().KeyOf(item)))
}

// Targets returns the Bigtable tables of the job: first the table of the items, then
// those of the indexes.
func (j *Job) Targets() []string {
	tables := []string{j.Mapping.TargetTable()}
	for _, x := range j.Mapping.Indexes() {
		tables = append(tables, x.TargetTable())
	}
	return tables
}

// Timed starts to measure a phase. The caller calls done at its end.
func (j *Job) Timed(phase string) (done func(items int64)) {
	if j.Options.Stopwatch == nil {
		return func(int64) {}
	}
	start := j.Options.Stopwatch()
	return func(items int64) {
		j.Report.AddPhase(phase, items, j.Options.Stopwatch()-start)
	}
}
