package migrate

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Lint applies the rules to an input with its mappings. It infers a mapping for a table
// that has none. For a fixture, it checks the mapping, data, golden rows, access patterns
// and trace. If a mapping file does not compile, Lint checks the parts that it can read.
// It does not need a Bigtable.
//
// Lint returns a [source.Error] if the input is damaged. The findings are in Report.Lint.
// They count as differences if LintRules.FailOn selects them, or if
// expect/lint.golden.json lists other findings.
func Lint(ctx context.Context, in Input, o LintOptions) (*report.Report, error) {
	options := o.options()
	f, err := in.open(&options)
	if err != nil {
		return nil, err
	}
	r := newLintRun(f, options.Normalized())
	if f.Refused == nil {
		for _, t := range f.Data.Tables {
			j, err := table.NewJob(ctx, f.Data, t, r.Options)
			if err != nil {
				return nil, err
			}
			if f.Files == nil {
				r.Report.Warnings = append(r.Report.Warnings, j.Warnings...)
			}
			r.Jobs = append(r.Jobs, j)
		}
		r.LeaveOut()
	}
	if err := lintInput(ctx, r, f, o.LintRules, false); err != nil {
		return nil, err
	}
	return r.Report, nil
}

// newLintRun returns a run that only lints.
func newLintRun(f *table.Fixture, o table.Options) *table.Run {
	r := report.New(o.MaxDifferences)
	r.Fixture, r.Title, r.Source, r.Format, r.OnlyLint = f.Name, f.Title, f.Data.Path, f.Data.Format, true
	return &table.Run{Options: o, Report: r}
}

// lintConfig reads the lint settings of a fixture outside its mapping file: the key `lint` of
// fixture.yaml, and lint.yaml over it.
func lintConfig(f *table.Fixture) (*lint.Config, error) {
	text, err := f.OptionalFile(fixtures.LintFile)
	if err != nil {
		return nil, err
	}
	config, err := lint.ReadConfig(f.Lint)
	var over *lint.Config
	if err == nil {
		over, err = lint.ParseConfig(fixtures.LintFile, text)
	}
	if err != nil {
		return nil, source.Damaged(source.FixtureInvalid, source.Position{}, err, "the lint configuration cannot be used")
	}
	return config.Over(over), nil
}

// lintInput applies the rules. If there are no jobs, the fixture's mapping does not compile.
// stored means that another loader wrote the rows: they are checked instead of golden rows and
// rows of the mapping.
func lintInput(ctx context.Context, r *table.Run, f *table.Fixture, rules LintRules, stored bool) error {
	config, err := lintConfig(f)
	if err != nil {
		return err
	}
	pass := lint.New(config.Over(rules.Config))
	r.Report.FailOn = rules.FailOn
	rows := int64(0) // stored
	if len(r.Jobs) == 0 {
		for i, t := range f.Data.Tables {
			table, err := lintTable(t, (*mapfile.Sealed)(f.Spec).Open(), nil, t.ExportTime, r.Options.Now)
			if err != nil {
				return err
			}
			if i == 0 {
				table.Patterns = lintPatterns(f.Patterns)
			}
			p := pass.Table(table)
			for e, err := range t.Entries() {
				if err != nil {
					return err
				}
				p.Item(e.Item, nil)
				r.Report.Items++
			}
		}
		pass.Stop(f.Refused.Error())
	}
	for i, j := range r.Jobs {
		var spec *mapfile.Spec
		if spec = j.Mapping.Spec(); spec == nil {
			return fmt.Errorf("table %s has a default layout, which no mapping file describes: there is nothing to lint", j.Source.Name)
		}
		table, err := lintTable(j.Source, spec, j.Mapping, time.UnixMicro(j.Micros), r.Options.Now)
		if err != nil {
			return err
		}
		if i == 0 {
			table.Patterns = lintPatterns(f.Patterns)
		}
		table.Stored = stored
		p := pass.Table(table)
		items, err := lintItems(ctx, j, p)
		if err != nil {
			return err
		}
		if table.Stored {
			n, err := lintStored(ctx, j, p, r.B)
			if err != nil {
				return err
			}
			rows += n
		}
		if r.Report.OnlyLint {
			j.Report.Items = items
			j.Describe()
			r.Report.Items += items
			r.Report.Tables = append(r.Report.Tables, j.Report)
		}
		if !table.Stored {
			if err := lintGoldenRows(f, j, i, p); err != nil {
				return err
			}
		}
		if i == 0 {
			if err := lintTrace(f.Files, p); err != nil {
				return err
			}
		}
	}
	r.Report.Lint = pass.Finish()
	for _, a := range r.Report.Lint.Unmet {
		r.Report.Warnings = append(r.Report.Warnings, fmt.Sprintf("%s: lint: the acceptance of %s matches no finding (%s)", a.At, a.Rule, a.Why))
	}
	if len(r.Jobs) == 0 && r.Report.Lint.Errors == 0 {
		return table.OfFixtures(f.Refused) // no rule reports the fault
	}
	noted := r.Report.Uncounted()
	err = r.Report.Check(report.LintCheck, "", func() (string, error) {
		for _, found := range r.Report.Lint.Findings {
			if !r.Report.IsDifference(found) {
				continue
			}
			r.Report.Fail(report.Failure{
				Kind: report.LintError, Table: found.Table, Pattern: found.Pattern, Rule: found.Rule, ItemKey: found.Item, RowKey: found.Row, Column: found.Column,
				Want: found.Expected, Got: found.Message, Detail: found.Fix, Mapping: found.Position(),
			})
		}
		detail := report.LintSummary(r.Report.Lint)
		if stored {
			detail += ", over " + phrase.Counted(rows, "stored row")
		}
		if noted != "" {
			detail += "; " + noted
		}
		return detail, nil
	})
	if err != nil {
		return err
	}
	if c := &r.Report.Checks[len(r.Report.Checks)-1]; noted != "" && c.State == report.CheckOK {
		c.State = report.CheckNoted
	}
	return compareLintGolden(r, f)
}

// lintItems passes the items of a table with their layout to the rules. An item that the
// mapping refuses is a finding if a rule covers the reason.
func lintItems(ctx context.Context, j *table.Job, p *lint.TablePass) (items int64, err error) {
	done := j.Timed("linting")
	for e, err := range j.Source.Entries() {
		if err != nil {
			return items, err
		}
		if err := ctx.Err(); err != nil {
			return items, err
		}
		if j.Failed(e.Item) { // the comparison has reported it
			continue
		}
		placed, err := (*mapping.Mapping)(j.Mapping).Place(e.Item, j.Micros)
		switch {
		case err == nil:
			p.Item(e.Item, &placed)
		case p.Refused(e.Item, err):
			p.Item(e.Item, nil)
		case j.Letters != nil:
			continue // a dead letter
		default:
			return items, source.Refused(e.Position, err, "the mapping cannot hold the item")
		}
		if items++; items%256 == 0 {
			j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "linting", Items: items, Total: j.Source.Total(items)})
		}
	}
	j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "linting", Items: items, Total: items})
	done(items)
	return items, nil
}

// lintStored passes the rows of the job's Bigtable table to the rules, one by one.
func lintStored(ctx context.Context, j *table.Job, p *lint.TablePass, b *table.Bigtable) (rows int64, err error) {
	for row, err := range b.TableRows(ctx, j.Report.Target) {
		if status.Code(err) == codes.NotFound { // the comparison reports it
			return 0, nil
		}
		if err != nil {
			return rows, err
		}
		p.Row(row)
		if rows++; rows%256 == 0 {
			j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "linting stored rows", Items: rows, Total: j.Report.Rows})
		}
	}
	return rows, nil
}

// lintTable converts a table for the rules. Ages are relative to the clock now or, so that the
// same input gives the same findings, to the time of the data.
func lintTable(t *source.Table, spec *mapfile.Spec, m *layout.Mapping, at time.Time, now func() time.Time) (lint.Table, error) {
	table := lint.Table{Name: t.Name, Spec: (*mapping.Spec)(mapfile.Seal(spec)), Mapping: (*mapping.Mapping)(m), Key: t.Key, TTL: t.TTL, Now: at}
	if spec != nil && spec.Source.Table != "" {
		table.Name = spec.Source.Table
	}
	if now != nil {
		table.Now = now()
	}
	if spec != nil {
		config, err := lint.ReadConfig(spec.Lint())
		if err != nil {
			return table, source.Damaged(source.FixtureInvalid, source.Position{}, err, "the lint configuration cannot be used")
		}
		table.Config = config
		table.Key = spec.Source.Key
		table.TTL = cmp.Or(spec.TTLAttribute(), table.TTL)
		for _, x := range spec.Source.GSIs {
			table.Indexes = append(table.Indexes, lint.Index{Name: x.Name, Key: x.Key, Local: x.Key.Hash.Name == t.Key.Hash.Name})
		}
	}
	for _, x := range t.Indexes {
		if !slices.ContainsFunc(table.Indexes, func(known lint.Index) bool { return known.Name == x.Name }) {
			table.Indexes = append(table.Indexes, lint.Index{Name: x.Name, Key: x.Key, Local: x.Local})
		}
	}
	return table, nil
}

// lintPatterns converts access patterns for the rules.
func lintPatterns(patterns []fixtures.Pattern) []lint.Pattern {
	var out []lint.Pattern
	for _, p := range patterns {
		q := lint.Pattern{ID: p.ID, File: p.File, Items: -1, Ordered: p.Expect.Order == "" || p.Expect.Order == "by-key", Strong: p.Consistency == "strong"}
		switch {
		case p.Expect.Count != nil:
			q.Items = *p.Expect.Count
		case p.Expect.Keys != nil || p.Expect.Items != nil:
			q.Items = len(p.Expect.Keys) + len(p.Expect.Items)
		}
		if d := p.DynamoDB; d != nil {
			q.Op = d.Op
			// A body that is not JSON fails when the pattern is run.
			q.Body, _ = json.Marshal(d.Requests()[0].Request, json.Deterministic(true))
		}
		if n := p.Bigtable; n != nil {
			if q.FullScan = n.FullScan; n.Read != nil {
				q.Read = lintRead(n.Read)
			}
			if n.Write != nil {
				for column := range n.Write.Increment {
					q.Increments = append(q.Increments, column)
				}
			}
		}
		out = append(out, q)
	}
	return out
}

func lintRead(n *fixtures.NativeRead) *lint.NativeRead {
	r := &lint.NativeRead{
		Table: n.Table, Keys: n.Keys, Reversed: n.Reversed, Limit: n.Limit, Family: n.Filter.Family,
		Times: n.Filter.TimestampStart != 0 || n.Filter.TimestampEnd != 0, Newest: n.Filter.CellsPerColumn > 0,
	}
	_, spans, _ := n.Spans() // checked when the pattern was read
	for _, one := range spans {
		r.Ranges = append(r.Ranges, [2]string{string(one.Start), string(one.End)})
	}
	return r
}

// lintGoldenRows passes the golden rows of a table to the rules.
func lintGoldenRows(f *table.Fixture, j *table.Job, i int, p *lint.TablePass) error {
	if f.GoldenFile != fixtures.GoldenFile { // a sample is not enough
		return nil
	}
	tables, err := compare.GoldenTablesOf(f, j)
	if err != nil {
		return err
	}
	for n, t := range tables {
		if n == 0 && i > 0 || t.ID != j.Report.Target {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(t.Rows)) {
			p.Row(golden.Bytes(t.Rows[key]))
		}
	}
	return nil
}

// tracedRequest is a line of a trace.
type tracedRequest struct {
	At      time.Time      `json:"at"`
	Op      string         `json:"op"`
	Request jsontext.Value `json:"request"`
	Count   float64        `json:"count"` // number of such requests; 0 means one
	Bytes   int            `json:"bytes"` // of the item, if the request lacks it
}

// lintTrace passes the requests of a fixture's trace to the rules, file by file in order of
// name.
func lintTrace(fsys fs.FS, p *lint.TablePass) error {
	if fsys == nil {
		return nil
	}
	var last time.Time
	entries, err := fs.ReadDir(fsys, fixtures.TraceDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return source.Damaged(source.FixtureInvalid, source.Position{File: fixtures.TraceDir}, err, "the folder cannot be read")
	}
	for _, e := range entries {
		if name := path.Join(fixtures.TraceDir, e.Name()); !e.IsDir() && path.Ext(name) == ".jsonl" {
			if last, err = lintTraceFile(fsys, name, last, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// lintTraceFile checks one file of a trace. It takes the time of the last request of the
// previous file, and returns that of this file.
func lintTraceFile(fsys fs.FS, name string, last time.Time, p *lint.TablePass) (time.Time, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return last, source.Damaged(source.FixtureInvalid, source.Position{File: name}, err, "the trace cannot be read")
	}
	defer func() { _ = file.Close() }() // only read
	scan := bufio.NewScanner(file)
	scan.Buffer(nil, source.MaxItemBytes)
	for line := 1; scan.Scan(); line++ {
		text := scan.Bytes()
		if strings.TrimSpace(string(text)) == "" {
			continue
		}
		at := source.Position{File: name, Line: line}
		var q tracedRequest
		if err := json.Unmarshal(text, &q, json.RejectUnknownMembers(true)); err != nil {
			return last, source.Damaged(source.FixtureInvalid, at, err, `this is not a request of a trace; expected {"at": time, "op": name, "request": {…}, "count": n, "bytes": n}`)
		}
		if q.At.IsZero() || q.Op == "" || q.Count < 0 {
			return last, source.Damaged(source.FixtureInvalid, at, nil, "the request needs a time (at) and an operation (op), and a count that is not negative")
		}
		if q.At.Before(last) {
			return last, source.Damaged(source.FixtureInvalid, at, nil, "the request is from %s, which is before the previous request (%s); a trace must be in order of time, across all files", q.At.Format(time.RFC3339Nano), last.Format(time.RFC3339Nano))
		}
		last = q.At
		if err := p.Request(lint.Request{At: q.At, Op: q.Op, Body: q.Request, Count: q.Count, Bytes: q.Bytes}); err != nil {
			return last, source.Damaged(source.FixtureInvalid, at, err, "the request cannot be parsed")
		}
	}
	if err := scan.Err(); err != nil {
		return last, source.Damaged(source.FixtureInvalid, source.Position{File: name}, err, "the trace cannot be read")
	}
	return last, nil
}

// goldenFinding is a finding expected by lint.golden.json.
type goldenFinding struct {
	Rule    string     `json:"rule"`
	Level   lint.Level `json:"level"`
	Where   string     `json:"where"`
	Message string     `json:"message"`
}

// writeLintGolden writes the text of expect/lint.golden.json that expects these findings.
func writeLintGolden(w io.Writer, l *lint.Result) error {
	findings := make([]goldenFinding, len(l.Findings))
	for i, f := range l.Findings {
		findings[i] = goldenFinding{f.Rule, f.Level, f.Where(), f.Message}
	}
	if err := json.MarshalWrite(w, findings, jsontext.WithIndent("  ")); err != nil {
		return fmt.Errorf("writing the golden findings: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// compareLintGolden compares the findings with expect/lint.golden.json, if the
// fixture has it, and reports the differences.
func compareLintGolden(r *table.Run, f *table.Fixture) error {
	text, err := f.OptionalFile(fixtures.LintGoldenFile)
	if err != nil || text == nil {
		return err
	}
	var want []goldenFinding
	if err := json.Unmarshal(text, &want, json.RejectUnknownMembers(true)); err != nil {
		return source.Damaged(source.FixtureInvalid, source.Position{File: fixtures.LintGoldenFile}, err, "the golden findings cannot be read")
	}
	return r.Report.Check("golden findings", "", func() (string, error) {
		detail := phrase.Counted(int64(len(want)), "finding")
		for _, f := range r.Report.Lint.Findings {
			got := goldenFinding{f.Rule, f.Level, f.Where(), f.Message}
			if i := slices.Index(want, got); i >= 0 {
				want = slices.Delete(want, i, i+1)
				continue
			}
			r.Report.Fail(report.Failure{Kind: report.GoldenDiffers, Rule: f.Rule, Got: got.String(), File: fixtures.LintGoldenFile})
		}
		for _, missing := range want {
			r.Report.Fail(report.Failure{Kind: report.GoldenDiffers, Rule: missing.Rule, Want: missing.String(), File: fixtures.LintGoldenFile})
		}
		return detail, nil
	})
}

func (g goldenFinding) String() string {
	return fmt.Sprintf("%s %s: %s: %s", g.Level, g.Rule, g.Where, g.Message)
}
