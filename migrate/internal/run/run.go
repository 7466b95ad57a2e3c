package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Run is the work on the tables of a source: who acts, and the report of it.
type Run struct {
	Conn    grpc.ClientConnInterface
	B       *Bigtable // over conn; both nil as long as none is needed
	Jobs    []*Job
	Report  *report.Report
	Options Options

	identity string        // of all parts, if this is one
	complete *completePart // the part was dealt with before
}

// Connect says where the tables are.
func (r *Run) Connect(conn grpc.ClientConnInterface) {
	r.Conn, r.B = conn, NewBigtable(conn, r.Options)
	r.B.Live = map[string]func(layout.Row) layout.Row{}
	for _, j := range r.Jobs {
		if j.Options.Expires && j.collectsExpired() {
			r.B.Live[j.Report.Target] = j.live
		}
	}
}

// loadCheck is the check that the items of a table are loaded.
const loadCheck = "load"

// LoadAll loads all jobs, from where a checkpoint says.
func (r *Run) LoadAll(ctx context.Context) error {
	c, err := OpenCheckpoint(r.Jobs)
	if err != nil {
		return err
	}
	for i, j := range r.Jobs {
		if err := (tablePart{j}).splitTables(ctx, r.B); err != nil {
			return err
		}
		err := r.Report.Check(loadCheck, j.Report.Target, func() (string, error) {
			unfinished, first, err := j.beginNote(ctx, r.B)
			if err != nil {
				return "", err
			}
			// The note is there before the rows, so that the next load knows of one that
			// was cut off. Where there was none, or no table, catching up reads nothing of
			// it; and what a door noted of a table that is gone is taken back before there
			// is a new one.
			early := first || j.earlier > 0
			if early {
				if _, err := j.writeSchema(ctx, r.B, unfinished); err != nil {
					return "", err
				}
			}
			if err := j.awaitDoors(ctx, r.B); err != nil {
				return "", err
			}
			if err := (tablePart{j}).noteBegun(ctx, r.B); err != nil {
				return "", err
			}
			if err := j.catchUp(ctx, r.B, r.Report); err != nil {
				return "", err
			}
			if !early {
				if _, err := j.writeSchema(ctx, r.B, unfinished); err != nil {
					return "", err
				}
			}
			if err := j.load(ctx, r.B, c, i); err != nil {
				return "", err
			}
			if unfinished && r.Options.Share.Of == 0 { // else FinishLoad does
				err = j.endNote(ctx, r.B)
			}
			return phrase.Counted(j.Report.Items, "item"), err
		})
		if err != nil {
			return err
		}
	}
	r.Report.Warnings = append(r.Report.Warnings, c.lost...)
	if r.Options.Share.Of > 0 {
		return nil // the checkpoint goes when EndPart has said what was done
	}
	return c.remove()
}

// Sum fills in the totals.
func (r *Run) Sum() {
	r.Report.Items, r.Report.Rows, r.Report.Exceptions, r.Report.Tables = 0, 0, 0, r.Report.Tables[:0]
	for _, j := range r.Jobs {
		r.Report.Items += j.Report.Items
		r.Report.Rows += j.Report.Rows
		r.Report.Exceptions += j.Report.Exceptions
		r.Report.Tables = append(r.Report.Tables, j.Report)
	}
}

// newRun finds the mapping of each table, and reads no more of the source than that
// takes.
func newRun(ctx context.Context, src *source.Source, o Options) (*Run, error) {
	if len(src.Tables) == 0 {
		return nil, source.Damaged(source.Unrecognized, source.Position{File: src.Path}, nil, "the source has no table")
	}
	r := report.New(o.MaxDifferences)
	r.Fixture, r.Source, r.Format, r.Compared = o.Fixture, src.Path, src.Format, !o.Warn
	var jobs []*Job
	budget := o.Held
	all, err := src, error(nil)
	if o.Share.Of > 0 {
		if src, err = partOf(src, o); err != nil {
			return nil, err
		}
	}
	for i, t := range src.Tables {
		t = t.Held(&budget)
		t.Lenient = o.DeadLetter != nil
		j, err := NewJob(ctx, src, t, o)
		if err != nil {
			return nil, err
		}
		j.whole = all.Tables[i].As(j.Source.Name, j.Source.Key)
		if o.DeadLetter != nil {
			j.Letters = &deadLetters{o.DeadLetter, r}
		}
		if o.Judges {
			j.failures = r
		}
		for _, other := range jobs {
			for _, target := range other.Targets() {
				if slices.Contains(j.Targets(), target) {
					return nil, source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil,
						"tables %s and %s would both be written to Bigtable table %s", other.Source.Name, t.Name, target)
				}
			}
		}
		r.Warnings = append(r.Warnings, j.Warnings...)
		jobs = append(jobs, j)
	}
	made := &Run{Jobs: jobs, Report: r, Options: o}
	if o.Share.Of > 0 {
		err = made.beginPart(all)
	}
	return made, err
}

// Prepare finds the mapping of each table and checks all of the source, or of its part.
func Prepare(ctx context.Context, src *source.Source, o Options) (*Run, error) {
	all, err := newRun(ctx, src, o.Normalized())
	if err != nil || all.Complete() {
		return all, err
	}
	return all, all.examine(ctx, src)
}

// examine checks all of the source.
func (r *Run) examine(ctx context.Context, src *source.Source) error {
	jobs, told, o := r.Jobs, r.Report, r.Options
	err := told.Check("input", "", func() (string, error) {
		for _, j := range jobs {
			warnings, err := j.examine(ctx)
			if err != nil {
				return "", err
			}
			told.Warnings = append(told.Warnings, warnings...)
			j.Describe()
			if spec := j.Mapping.Spec(); spec != nil {
				text, err := spec.YAML()
				if err != nil {
					return "", fmt.Errorf("writing the mapping of table %s: %w", j.Source.Name, err)
				}
				j.Report.Mapping = string(text)
			}
		}
		detail := src.Format + ", every item read"
		letters, leftOut := int64(0), int64(0)
		for _, j := range jobs {
			letters, leftOut = letters+j.Report.DeadLetters, leftOut+j.Report.LeftOut
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
		return err
	}
	r.LeaveOut()
	if !o.Warn && !o.AllowEmpty && o.Share.Of == 0 && !slices.ContainsFunc(jobs, func(j *Job) bool { return j.Report.Items > 0 || len(j.refused) > 0 || j.Report.Expired > 0 }) {
		return source.Damaged(source.SourceEmpty, source.Position{File: src.Path}, nil, "the source has no items: nothing would be verified")
	}
	return nil
}

// LoadAgain loads a second time and checks that there was nothing to write.
func (r *Run) LoadAgain(ctx context.Context, j *Job) (string, error) {
	first := j.Report
	j.wrote = func(table string, e writeEntry) {
		tl := LayoutOf(table, j)
		for _, m := range e.GetMutations() {
			s := m.GetSetCell()
			f := report.InRow(table, e.GetRowKey())
			f.Kind, f.Column = report.NotIdempotent, s.GetFamilyName()+":"+phrase.Column(string(s.GetColumnQualifier()))
			f.Want = cellText(layout.Cell{Timestamp: s.GetTimestampMicros(), Value: s.GetValue()})
			f.Detail = "the cell was not there any more, and was written again"
			r.Report.Fail(tl.Owned(f, tl.OwnerOf(e.entry.Item)))
		}
	}
	err := j.LoadAfresh(ctx, r.B)
	j.wrote = nil
	if err != nil {
		return "", err
	}
	written, unchanged := j.Report.CellsWritten, j.Report.CellsUnchanged
	j.Report.CellsWritten, j.Report.CellsUnchanged = first.CellsWritten, first.CellsUnchanged
	if changed, err := j.writeSchema(ctx, r.B, false); err != nil {
		return "", err
	} else if changed > 0 {
		r.Report.Fail(report.Failure{Kind: report.NotIdempotent, Table: layout.SchemaTable, Want: "nothing to write", Got: phrase.Counted(int64(changed), "row") + " written again"})
	}
	return fmt.Sprintf("%s there already, %d written", phrase.Counted(unchanged, "cell"), written), nil
}

// Wants reports whether a check is to run, and else notes that it is not.
func (r *Run) Wants(name string, choice *bool) bool {
	if choice == nil || *choice {
		return true
	}
	r.Report.Skip(name, "", "%s turns it off (checks)", fixtures.FixtureFile)
	return false
}

// WarnOfPatterns says that the access patterns which a mapping names are not run:
// it is used apart from the folder in which they are.
func (r *Run) WarnOfPatterns() {
	for _, j := range r.Jobs {
		if spec := j.Mapping.Spec(); spec != nil && len(spec.Patterns) > 0 {
			r.Report.Warnings = append(r.Report.Warnings, fmt.Sprintf("table %s: the access patterns that its mapping names (patterns: %s) are not run: verify the fixture folder that holds them",
				j.Source.Name, strings.Join(spec.Patterns, ", ")))
		}
	}
}
