package table

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Fixture is a fixture directory with its data. A plain source is a fixture without
// Files.
type Fixture struct {
	*fixtures.Fixture
	Data  *source.Source
	Files fs.FS
}

// OfSource returns a source as a Fixture.
func OfSource(src *source.Source) *Fixture {
	return &Fixture{Fixture: &fixtures.Fixture{}, Data: src}
}

// OpenFixture opens the fixture directory at the root of fsys. A mapping file that does
// not compile is not an error: Compiles reports it. o overrides the settings of the
// fixture.
func OpenFixture(fsys fs.FS, o source.Options) (*Fixture, error) {
	folder, err := fixtures.Open(fsys)
	if err != nil {
		return nil, OfFixtures(err)
	}
	f := &Fixture{Fixture: folder, Files: fsys}
	o.Table = cmp.Or(o.Table, f.Table)
	if o.TableSchema == nil {
		o.TableSchema, o.TableSchemaFile = f.Schema, fixtures.SchemaFile
	}
	if o.CSV.Delimiter == "" && o.CSV.Header == nil && o.CSV.QuotedEmpty == "" && !o.CSV.Ragged {
		o.CSV = source.CSVOptions(f.CSV)
	}
	f.Data, err = source.OpenFS(fsys, f.Source, o)
	return f, err
}

// Compiles returns the error from compiling the mapping file, or nil.
func (f *Fixture) Compiles() error {
	if f.Refused == nil {
		return nil
	}
	return OfFixtures(f.Refused)
}

// OptionalFile reads a file of the fixture, or returns nil if the file does not exist.
func (f *Fixture) OptionalFile(name string) ([]byte, error) {
	if f.Files == nil {
		return nil, nil
	}
	text, err := fixtures.ReadOptional(f.Files, name)
	return text, OfFixtures(err)
}

// OfFixtures converts an error of package fixtures to a [source.Error] with the damage
// FixtureInvalid, and returns other errors unchanged.
func OfFixtures(err error) error {
	bad, ok := errors.AsType[*fixtures.Error](err)
	if !ok {
		return err
	}
	return &source.Error{Damage: source.FixtureInvalid, File: bad.File, Line: bad.Line, Column: bad.Column, Detail: bad.Detail, Err: bad.Err}
}
