package migrate

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// wants reports whether a check is to run, and else notes that it is not.
func (r *run) wants(name string, choice *bool) bool {
	if choice == nil || *choice {
		return true
	}
	r.report.Skip(name, "", "%s turns it off (checks)", fixtures.FixtureFile)
	return false
}

// OpenFixture opens a fixture directory, the root of fsys, as an input: its data
// and its own mapping, nil if it has none. What o says goes before what the
// fixture says. Errors are those of [Verify].
func OpenFixture(fsys fs.FS, o source.Options) (*source.Source, *mapping.Mapping, error) {
	f, err := readFixture(fsys, o)
	if err == nil && f.Refused != nil {
		err = ofFixtures(f.Refused)
	}
	if err != nil {
		return nil, nil, err
	}
	return f.source, (*mapping.Mapping)(f.Mapping), nil
}

// fixture is a fixture directory with its data.
type fixture struct {
	*fixtures.Fixture
	source *source.Source
}

// openFixture opens a fixture directory, the root of fsys.
func openFixture(fsys fs.FS) (*fixture, error) {
	f, err := readFixture(fsys, source.Options{})
	if err == nil && f.Refused != nil {
		return nil, ofFixtures(f.Refused)
	}
	return f, err
}

// readFixture is openFixture that takes a mapping file which does not compile,
// and what a caller knows better than the fixture.
func readFixture(fsys fs.FS, o source.Options) (*fixture, error) {
	folder, err := fixtures.Open(fsys)
	if err != nil {
		return nil, ofFixtures(err)
	}
	f := &fixture{Fixture: folder}
	o.Table = cmp.Or(o.Table, f.Table)
	if o.TableSchema == nil {
		o.TableSchema, o.TableSchemaFile = f.Schema, fixtures.SchemaFile
	}
	if o.CSV.Delimiter == "" && o.CSV.Header == nil && o.CSV.QuotedEmpty == "" {
		o.CSV = source.CSVOptions(f.CSV)
	}
	f.source, err = source.OpenFS(fsys, f.Source, o)
	return f, err
}

// readOptional reads a file of a fixture that need not be there.
func readOptionalFile(fsys fs.FS, name string) ([]byte, error) {
	text, err := fixtures.ReadOptional(fsys, name)
	return text, ofFixtures(err)
}

// ofFixtures is the fault of a fixture as one of the input.
func ofFixtures(err error) error {
	bad, ok := errors.AsType[*fixtures.Error](err)
	if !ok {
		return err
	}
	return &source.Error{Damage: source.FixtureInvalid, File: bad.File, Line: bad.Line, Column: bad.Column, Detail: bad.Detail, Err: bad.Err}
}
