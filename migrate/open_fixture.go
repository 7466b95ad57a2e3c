package migrate

import (
	"io/fs"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/run"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// OpenFixture opens a fixture directory, the root of fsys, as an input: its data
// and its own mapping, nil if it has none. What o says goes before what the
// fixture says. Errors are those of [Verify].
func OpenFixture(fsys fs.FS, o source.Options) (*source.Source, *mapping.Mapping, error) {
	f, err := run.ReadFixture(fsys, o)
	if err == nil && f.Refused != nil {
		err = run.OfFixtures(f.Refused)
	}
	if err != nil {
		return nil, nil, err
	}
	return f.Data, (*mapping.Mapping)(f.Mapping), nil
}
