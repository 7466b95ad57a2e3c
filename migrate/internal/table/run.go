package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Run holds the tables of a source, their target, and the report.
type Run struct {
	Conn    grpc.ClientConnInterface
	B       *Bigtable // client over Conn; Connect sets both
	Jobs    []*Job
	Report  *report.Report
	Options Options

	Folder   parts.Folder    // folder of the parts, if the run is a part
	complete *parts.Complete // result of the already complete part
}

// Connect sets the connection to the target.
func (r *Run) Connect(conn grpc.ClientConnInterface) {
	r.Conn, r.B = conn, NewBigtable(conn, r.Options)
	r.B.Live, r.B.Views = map[string]func(layout.Row) layout.Row{}, map[string]*layout.View{}
	for _, j := range r.Jobs {
		for _, v := range j.Mapping.Views() {
			r.B.Views[v.ID()] = v
		}
		if j.Options.Expires && j.CollectsExpired() {
			r.B.Live[j.Report.Target] = j.live
		}
	}
}

// Sum computes the totals in the report.
func (r *Run) Sum() {
	r.Report.Items, r.Report.Rows, r.Report.Exceptions, r.Report.Tables = 0, 0, 0, r.Report.Tables[:0]
	for _, j := range r.Jobs {
		r.Report.Items += j.Report.Items
		r.Report.Rows += j.Report.Rows
		r.Report.Exceptions += j.Report.Exceptions
		r.Report.Tables = append(r.Report.Tables, j.Report)
	}
}

// newRun finds the mapping of each table. It reads the source only as far as it needs for
// that.
func newRun(ctx context.Context, src *source.Source, o Options) (*Run, error) {
	if len(src.Tables) == 0 {
		return nil, source.Damaged(source.Unrecognized, source.Position{File: src.Path}, nil, "the source has no tables")
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
			j.Letters = NewDeadLetters(o.DeadLetter, r)
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

// Prepare returns a run with the mapping of each table, after checking the whole source
// or the part of it that the options name.
func Prepare(ctx context.Context, src *source.Source, o Options) (*Run, error) {
	all, err := newRun(ctx, src, o.Normalized())
	if err != nil || all.Complete() {
		return all, err
	}
	return all, all.Examine(ctx, src)
}

// Examine checks the whole source, or the part of it that the options name, and adds the
// results to the report.
func (r *Run) Examine(ctx context.Context, src *source.Source) error {
	jobs, rep, o := r.Jobs, r.Report, r.Options
	err := rep.Check("input", "", func() (string, error) {
		for _, j := range jobs {
			warnings, err := examine(ctx, j)
			if err != nil {
				return "", err
			}
			rep.Warnings = append(rep.Warnings, warnings...)
			if err := j.describeMapping(); err != nil {
				return "", err
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
	if !o.Warn && !o.AllowEmpty && o.Share.Of == 0 && !slices.ContainsFunc(jobs, func(j *Job) bool { return j.Report.Items > 0 || len(j.Refused) > 0 || j.Report.Expired > 0 }) {
		return source.Damaged(source.SourceEmpty, source.Position{File: src.Path}, nil, "the source has no items: nothing would be verified")
	}
	return nil
}

// Wants reports whether to run a check. It does not run if *choice is false; the report then
// records the reason.
func (r *Run) Wants(name string, choice *bool) bool {
	if choice == nil || *choice {
		return true
	}
	r.Report.Skip(name, "", "%s turns it off (checks)", fixtures.FixtureFile)
	return false
}

// WarnOfPatterns warns that the access patterns of a mapping will not run, because the
// folder of the patterns was not given.
func (r *Run) WarnOfPatterns() {
	for _, j := range r.Jobs {
		if spec := j.Mapping.Spec(); spec != nil && len(spec.Patterns) > 0 {
			r.Report.Warnings = append(r.Report.Warnings, fmt.Sprintf("table %s: the access patterns of its mapping (patterns: %s) are not run: verify the fixture folder that has them",
				j.Source.Name, strings.Join(spec.Patterns, ", ")))
		}
	}
}
