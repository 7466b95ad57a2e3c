package mapping

import (
	_ "embed" // for the schema
	"io/fs"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

//go:generate go test ../../internal/layout -count=1 -run TestReference -update

//go:embed mapping.schema.json
var jsonSchema string

// JSONSchema returns the JSON Schema (draft 2020-12) of mapping files, for editors and
// other tools. It accepts the same files as Parse.
func JSONSchema() string { return jsonSchema }

// Spec is a parsed mapping file. Its contents can be read only as YAML.
type Spec mapfile.Sealed

// Parse parses the mapping file src. file is the name of the file in errors, which are of
// type *maperr.SpecError. Parse rejects keys that are not in the schema. Compile checks
// whether the rules can be inverted. Parse reads from beside the protobuf descriptor sets
// that the file names.
func Parse(file string, src []byte, beside ...fs.FS) (*Spec, error) {
	spec, err := mapfile.Read(file, src, beside...)
	return (*Spec)(mapfile.Seal(spec)), err
}

// YAML returns the file in its canonical form, without comments. Parsing the result gives
// the same mapping.
func (s *Spec) YAML() ([]byte, error) { return (*mapfile.Sealed)(s).Open().YAML() }
