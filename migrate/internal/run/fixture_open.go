package run

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Fixture is a fixture directory with its data.
type Fixture struct {
	*fixtures.Fixture
	Data *source.Source
}

// OpenFixture opens a fixture directory, the root of fsys.
func OpenFixture(fsys fs.FS) (*Fixture, error) {
	f, err := ReadFixture(fsys, source.Options{})
	if err == nil && f.Refused != nil {
		return nil, OfFixtures(f.Refused)
	}
	return f, err
}

// ReadFixture is OpenFixture that takes a mapping file which does not compile,
// and what a caller knows better than the fixture.
func ReadFixture(fsys fs.FS, o source.Options) (*Fixture, error) {
	folder, err := fixtures.Open(fsys)
	if err != nil {
		return nil, OfFixtures(err)
	}
	f := &Fixture{Fixture: folder}
	o.Table = cmp.Or(o.Table, f.Table)
	if o.TableSchema == nil {
		o.TableSchema, o.TableSchemaFile = f.Schema, fixtures.SchemaFile
	}
	if o.CSV.Delimiter == "" && o.CSV.Header == nil && o.CSV.QuotedEmpty == "" {
		o.CSV = source.CSVOptions(f.CSV)
	}
	f.Data, err = source.OpenFS(fsys, f.Source, o)
	return f, err
}

// ReadOptionalFile reads a file of a fixture that need not be there.
func ReadOptionalFile(fsys fs.FS, name string) ([]byte, error) {
	text, err := fixtures.ReadOptional(fsys, name)
	return text, OfFixtures(err)
}

// OfFixtures is the fault of a fixture as one of the input.
func OfFixtures(err error) error {
	bad, ok := errors.AsType[*fixtures.Error](err)
	if !ok {
		return err
	}
	return &source.Error{Damage: source.FixtureInvalid, File: bad.File, Line: bad.Line, Column: bad.Column, Detail: bad.Detail, Err: bad.Err}
}
