package layout

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// SchemaTable is the table that holds the layouts of an instance's tables; the other constant is
// its family.
const (
	SchemaTable  = "_migration_schema"
	SchemaFamily = "m"
)

// These are the columns of the row that holds a table's mapping: the mapping file, the outcome of
// its joiner auto, and the prefix of its descriptor sets, whose names follow.
const (
	SchemaMapping     = "mapping"
	schemaJoiner      = "joiner"
	schemaDescriptors = "descriptors/"
)

// SchemaRows returns the sorted rows of SchemaTable for the table of the mapping. The row of the
// table holds the mapping file, its descriptor sets, its hash, and the joiner of the rows (the
// outcome of auto, see Mapping.Proven). Each attribute of the key and the schema has a row with its
// type and its role, unless its name is too long for a row key.
//
// The row keys begin with the id of the table and a '#'. All cells have the timestamp timeMicros.
// FromSchemaRows is the inverse. SchemaRows returns an error for a default layout, which has no
// such rows.
func (m *Mapping) SchemaRows(timeMicros int64) ([]Row, error) {
	lock, err := m.Lock()
	if err != nil {
		return nil, err
	}
	text, err := m.YAML()
	if err != nil {
		return nil, err
	}
	row := func(key string, cells ...string) Row {
		r := Row{Key: append(SchemaRowPrefix(m.target), key...)}
		for i := 0; i < len(cells); i += 2 {
			r.Cells = append(r.Cells, Cell{Family: SchemaFamily, Qualifier: []byte(cells[i]), Timestamp: timeMicros, Value: []byte(cells[i+1])})
		}
		return r
	}
	cells := []string{}
	for _, name := range slices.Sorted(maps.Keys(m.spec.Descriptors)) {
		cells = append(cells, schemaDescriptors+name, string(m.spec.Descriptors[name]))
	}
	rows := []Row{row("", append(cells, "hash", lock.Hash, schemaJoiner, lock.Joiner, SchemaMapping, string(text), "source", m.source)...)}
	names, types := map[string]bool{}, m.spec.Types()
	for name := range types {
		names[name] = true
	}
	for _, a := range m.key.Attrs() {
		names[a.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		schema := types[name]
		part := ""
		for i, a := range m.key.Attrs() {
			if a.Name == name {
				schema, part = codec.Schema{Type: a.Type}, [...]string{"hash", "range"}[i]
			}
		}
		cells := []string{}
		if part != "" {
			cells = append(cells, "key", part)
		}
		cells = append(cells, "type", string(schema.Text()))
		if r := row(name, cells...); len(r.Key) <= lens.MaxRowKeyBytes {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// SchemaRowPrefix returns the prefix of the rows of a Bigtable table in SchemaTable.
func SchemaRowPrefix(table string) []byte { return []byte(table + "#") }

// FromSchemaRows returns the mapping that is stored in the given SchemaRows. Only the row of the
// table is needed; if it is missing, the result is nil.
func FromSchemaRows(table string, rows []Row) (*Mapping, error) {
	stored := storedIn(table, rows)
	if stored.text == nil {
		return nil, nil
	}
	spec, err := mapfile.Parse(SchemaTable, stored.text)
	if err != nil {
		return nil, fmt.Errorf("row %s# of %s: %w", table, SchemaTable, err)
	}
	if len(stored.descriptors) > 0 {
		spec.Descriptors = stored.descriptors
	}
	m, err := Compile(spec)
	if err != nil || stored.joiner == "" || stored.joiner == m.Joiner() || m.ProveJoiner() == nil {
		return m, err
	}
	return m.Proven(stored.joiner)
}

// IsStored reports whether the given rows are SchemaRows of the same mapping, apart from their
// timestamps. It is quicker than FromSchemaRows, which compiles the stored mapping. If IsStored
// returns false, the stored mapping may still have the same meaning.
func (m *Mapping) IsStored(rows []Row) (bool, error) {
	stored := storedIn(m.target, rows)
	if m.spec == nil || stored.text == nil {
		return false, nil
	}
	text, err := m.YAML()
	return bytes.Equal(stored.text, text) && stored.joiner == m.Joiner() &&
		maps.EqualFunc(stored.descriptors, m.spec.Descriptors, bytes.Equal), err
}

// storedMapping is a mapping in the row of its table.
type storedMapping struct {
	text        []byte // nil without a mapping
	joiner      string
	descriptors map[string][]byte
}

func storedIn(table string, rows []Row) storedMapping {
	stored := storedMapping{descriptors: map[string][]byte{}}
	i := slices.IndexFunc(rows, func(r Row) bool { return bytes.Equal(r.Key, SchemaRowPrefix(table)) })
	if i < 0 {
		return stored
	}
	for _, c := range rows[i].Cells {
		if c.Family != SchemaFamily {
			continue
		}
		name, isDescriptor := strings.CutPrefix(string(c.Qualifier), schemaDescriptors)
		switch {
		case isDescriptor:
			stored.descriptors[name] = c.Value
		case name == SchemaMapping:
			stored.text = c.Value
		case name == schemaJoiner:
			stored.joiner = string(c.Value)
		}
	}
	return stored
}
