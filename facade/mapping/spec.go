package mapping

import (
	_ "embed" // for the schema
	"io/fs"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

//go:generate go test ../../internal/layout -count=1 -run TestReference -update

//go:embed mapping.schema.json
var jsonSchema string

// JSONSchema is the JSON Schema (draft 2020-12) of mapping files, for editors
// and other tools. It accepts what Parse accepts.
func JSONSchema() string { return jsonSchema }

// Spec is a mapping file that has been read. Its contents are available only as
// YAML.
type Spec mapfile.Sealed

// Parse reads the mapping file src; file names it in errors, which are
// [*SpecError]. A key that is not in the schema is refused; whether the rules
// can be inverted is for Compile to find. The files that it names, protobuf
// descriptor sets, are looked up in beside.
func Parse(file string, src []byte, beside ...fs.FS) (*Spec, error) {
	spec, err := mapfile.Read(file, src, beside...)
	return (*Spec)(mapfile.Seal(spec)), err
}

// YAML returns the file in its canonical form, without comments: what Parse
// makes of it compiles to the same mapping.
func (s *Spec) YAML() ([]byte, error) { return (*mapfile.Sealed)(s).Open().YAML() }
