package migrate

import (
	"io/fs"
	"time"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Input is the input of Verify and Lint. [OfSource] and [OfFixture] return inputs.
type Input struct {
	source *source.Source
	files  fs.FS
}

// OfSource returns an input that reads a source, with the mappings of the options.
func OfSource(src *source.Source) Input { return Input{source: src} }

// OfFixture returns an input that reads the fixture directory at the root of fsys: its
// data, golden files, access patterns, checks and settings. The mapping and clock of the
// fixture override those of the options.
func OfFixture(fsys fs.FS) Input { return Input{files: fsys} }

// open opens the input. The name, clock and mapping of a fixture override those in o.
func (in Input) open(o *table.Options) (*table.Fixture, error) {
	switch {
	case in.source != nil:
		return table.OfSource(in.source), nil
	case in.files == nil:
		return nil, source.Damaged(source.Unrecognized, source.Position{}, nil, "the input is unset: expected OfSource or OfFixture")
	}
	f, err := table.OpenFixture(in.files, source.Options{})
	if err != nil {
		return nil, err
	}
	o.Fixture = f.Name
	if !f.At.IsZero() {
		o.Now = func() time.Time { return f.At }
	}
	if f.Mapping != nil {
		o.Mappings = append(o.Mappings[:len(o.Mappings):len(o.Mappings)], f.Mapping)
	}
	return f, nil
}

// OpenFixture opens the fixture directory at the root of fsys. It returns the data of the
// fixture and its mapping, which is nil if the fixture has none. o overrides the settings
// of the fixture. OpenFixture returns the same errors as [Verify].
func OpenFixture(fsys fs.FS, o source.Options) (*source.Source, *mapping.Mapping, error) {
	f, err := table.OpenFixture(fsys, o)
	if err == nil {
		err = f.Compiles()
	}
	if err != nil {
		return nil, nil, err
	}
	return f.Data, f.Mapping, nil
}
