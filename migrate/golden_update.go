package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// UpdateMode selects whether golden files are written. It implements flag.Value for a
// flag such as -update, which must be -update=force if the environment variable CI is
// true. The zero value writes nothing.
type UpdateMode string

// Modes that write golden files.
const (
	UpdateUnlessCI UpdateMode = "yes"
	UpdateForced   UpdateMode = "force"
)

// IsBoolFlag allows the flag without a value.
func (UpdateMode) IsBoolFlag() bool { return true }

// String returns the mode as the value of the flag.
func (m *UpdateMode) String() string { return string(*m) }

// Set parses the value of the flag: true, false or force.
func (m *UpdateMode) Set(value string) error {
	switch value {
	case "true":
		*m = UpdateUnlessCI
	case "false":
		*m = ""
	case string(UpdateForced):
		*m = UpdateForced
	default:
		return fmt.Errorf("%q is not a mode: expected true, false or force", value)
	}
	return nil
}

// Check returns an error if ci, the value of the environment variable CI, is "true" and
// the update is not forced. flag is the name of the flag in the error, such as
// "--update".
func (m UpdateMode) Check(flag, ci string) error {
	if m == UpdateUnlessCI && ci == "true" {
		return fmt.Errorf("%s is not allowed while CI=true, because a golden file that is rewritten to match the code proves nothing; use %s=force to write anyway", flag, flag)
	}
	return nil
}

// GoldenChange describes a golden file that UpdateGoldens wrote.
type GoldenChange struct {
	File           string   // path in the fixture directory
	Created        bool     // whether the file did not exist before
	Removed, Added []string // number of lines
}

// String describes the change on one line: "expect/rows.golden: 2 lines removed, 3
// added".
func (c GoldenChange) String() string {
	if c.Created {
		return fmt.Sprintf("%s: created, %s", c.File, phrase.Counted(int64(len(c.Added)), "line"))
	}
	return fmt.Sprintf("%s: %s removed, %d added", c.File, phrase.Counted(int64(len(c.Removed)), "line"), len(c.Added))
}

// UpdateGoldens loads a fixture directory and writes its golden files: rows, schema,
// fidelity, the lock of the mapping and the golden items of access patterns. It writes a
// hash and a sample instead of rows if there are more than 10,000 rows, or if the golden
// file already has that form. It writes lint findings only if their golden file exists. A
// file whose content still matches stays unchanged, including its comments. Each file is
// replaced atomically.
func UpdateGoldens(ctx context.Context, conn grpc.ClientConnInterface, dir string, o VerifyOptions) ([]GoldenChange, error) {
	in := OfFixture(os.DirFS(dir))
	f, r, err := prepare(ctx, conn, in, o.options())
	if err != nil {
		return nil, err
	}
	for _, j := range r.Jobs {
		if err := load.Afresh(ctx, r.B, j); err != nil {
			return nil, err
		}
	}
	u := &goldenUpdate{dir: dir, fixture: f}
	if err := u.rows(ctx, r); err != nil {
		return nil, err
	}
	fidelity, err := compare.FidelityGolden(r.Jobs)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(u.write(fixtures.SchemaGoldenFile, compare.SchemaGolden(r.Jobs)), u.write(fixtures.FidelityGoldenFile, fidelity)); err != nil {
		return nil, err
	}
	lock, err := compare.LockText(f, r.Jobs[0])
	if err != nil {
		return nil, err
	}
	if lock != nil {
		if err := u.write(mapfile.LockFile, lock); err != nil {
			return nil, err
		}
	}
	if err := u.items(ctx, r); err != nil {
		return nil, err
	}
	if _, err := fs.Stat(f.Files, fixtures.LintGoldenFile); err == nil {
		lintOptions := LintOptions{Common: o.Common}
		if o.Lint != nil {
			lintOptions.LintRules = *o.Lint
		}
		found, err := Lint(ctx, in, lintOptions)
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := writeLintGolden(&text, found.Lint); err != nil {
			return nil, err
		}
		if err := u.write(fixtures.LintGoldenFile, text.Bytes()); err != nil {
			return nil, err
		}
	}
	return u.changes, nil
}

type goldenUpdate struct {
	dir     string
	fixture *table.Fixture
	changes []GoldenChange
}

// write replaces a file that differs.
func (u *goldenUpdate) write(name string, text []byte) error {
	was, err := u.fixture.OptionalFile(name)
	if err != nil || was != nil && bytes.Equal(was, text) {
		return err
	}
	file := filepath.Join(u.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := parts.WriteWhole(file, text); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.Chmod(file, 0o644); err != nil { // part of a repository, not secret
		return fmt.Errorf("writing %s: %w", name, err)
	}
	c := GoldenChange{File: name, Created: was == nil}
	c.Removed, c.Added = compare.LineDiff(was, text)
	u.changes = append(u.changes, c)
	return nil
}

// rows writes the golden rows, unless they agree.
func (u *goldenUpdate) rows(ctx context.Context, r *table.Run) error {
	f := u.fixture
	if f.Golden != nil {
		tables, err := compare.GoldenTablesOf(f, r.Jobs[0])
		if err == nil {
			before := r.Report.Differences
			if _, err := compare.GoldenRows(ctx, r, tables); err != nil {
				return err
			}
			if r.Report.Differences == before {
				return nil
			}
		}
	}
	rows := int64(0)
	for _, j := range r.Jobs {
		rows += j.Report.Rows + j.Report.IndexRows
	}
	if f.GoldenFile == fixtures.GoldenSampleFile || f.Golden == nil && rows > maxGoldenRows {
		text, err := u.sampled(ctx, r)
		if err != nil {
			return err
		}
		return u.write(fixtures.GoldenSampleFile, text)
	}
	var text []byte
	first := true
	for _, j := range r.Jobs {
		for _, id := range j.Targets() {
			rows := []byte{}
			for row, err := range r.B.TableRows(ctx, id) {
				if err != nil {
					return err
				}
				rows = golden.AppendRow(rows, row)
			}
			if !first {
				text = fmt.Appendf(text, "\ntable %s\n", id)
			}
			text, first = append(text, rows...), false
		}
	}
	return u.write(fixtures.GoldenFile, text)
}

// items writes the golden items of access patterns: the answer of the DynamoDB endpoint, or of
// the native read if the pattern has no DynamoDB request.
func (u *goldenUpdate) items(ctx context.Context, r *table.Run) error {
	f := u.fixture
	if !slices.ContainsFunc(f.Patterns, func(p fixtures.Pattern) bool { return p.IsGolden() }) {
		return nil
	}
	server, err := endpoints.NewServer(ctx, r.Conn, r.Options, r.Jobs...)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // its state is in the tables
	d := endpoints.Open(r.B, server, r.Jobs[0], r.Report)
	for _, p := range f.Patterns {
		if !p.IsGolden() {
			continue
		}
		items, err := d.Golden(ctx, p)
		if err != nil {
			return fmt.Errorf("access pattern %s: %w", p.ID, err)
		}
		var text []byte
		for _, item := range items {
			text = append(attr.AppendItemJSON(text, item), '\n')
		}
		if err := u.write(p.ItemsGolden(), text); err != nil {
			return err
		}
	}
	return nil
}

const (
	maxGoldenRows    = 10_000 // more rows are hashed in written golden files
	goldenSampleRows = 50     // shown per table, at least, if it has them
)

// sampled returns the text of fixtures.GoldenSampleFile.
func (u *goldenUpdate) sampled(ctx context.Context, r *table.Run) ([]byte, error) {
	text := []byte("# For each table: its number of rows, the SHA-256 of their text, and a sample of the rows.\n")
	for _, j := range r.Jobs {
		for _, id := range j.Targets() {
			all, sample := golden.NewRowDigester(), &rowSample{}
			for row, err := range r.B.TableRows(ctx, id) {
				if err != nil {
					return nil, err
				}
				one := golden.AppendRow(nil, row)
				all.Add(one)
				sample.add(one)
			}
			text = fmt.Appendf(text, "\ntable %s %s\n", id, all.Digest())
			for _, one := range sample.kept {
				text = append(text, one...)
			}
		}
	}
	return text, nil
}

// rowSample keeps every nth text of a sequence: between goldenSampleRows texts and twice as
// many. The same sequence gives the same sample.
type rowSample struct {
	n, step int
	kept    [][]byte
}

func (s *rowSample) add(text []byte) {
	if s.step = max(s.step, 1); s.n%s.step == 0 {
		s.kept = append(s.kept, text)
	}
	s.n++
	if len(s.kept) <= 2*goldenSampleRows {
		return
	}
	for i := range (len(s.kept) + 1) / 2 {
		s.kept[i] = s.kept[2*i]
	}
	s.kept, s.step = s.kept[:(len(s.kept)+1)/2], 2*s.step
}
