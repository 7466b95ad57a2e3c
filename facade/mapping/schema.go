// Package mapping describes how the items of a DynamoDB table lie in the rows
// of a Bigtable table.
package mapping

import _ "embed" // for the schema

//go:generate go test ../../internal/layout -count=1 -run TestReference -update

//go:embed mapping.schema.json
var jsonSchema string

// JSONSchema is the JSON Schema (draft 2020-12) of mapping files, for editors
// and other tools. It takes what Parse takes.
func JSONSchema() string { return jsonSchema }
