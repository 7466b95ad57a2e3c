package mapping

import _ "embed" // for the schema

//go:generate go test . -count=1 -run TestReference -update

//go:embed mapping.schema.json
var jsonSchema string

// JSONSchema is the JSON Schema (draft 2020-12) of mapping files, for editors
// and other tools. It takes what Parse takes.
func JSONSchema() string { return jsonSchema }
