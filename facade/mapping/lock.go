package mapping

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// LockFile is the name of the file beside a mapping that holds its Lock.
const LockFile = "mapping.lock.json"

// Lock is what the compiler decided for a mapping file: what rows that were
// loaded by it depend on. A mapping that compiles to another lock reads and
// writes other rows.
type Lock struct {
	APIVersion string `json:"apiVersion"`
	// Hash is the SHA-256 of the mapping as Spec.YAML writes it, so that
	// comments and layout of the file do not matter.
	Hash      string       `json:"hash"`
	Source    string       `json:"source,omitempty"` // DynamoDB table
	Target    string       `json:"target"`           // Bigtable table
	Joiner    string       `json:"joiner,omitempty"`
	ListEpoch int64        `json:"listEpoch"` // ListEpochMillis
	Families  []LockFamily `json:"families"`
	// Shared are the attributes that share the family target.shared.
	Shared []string `json:"shared,omitempty"`
}

// LockFamily is a family of the table, with the attribute whose members or
// keys are its columns, if it is that of one.
type LockFamily struct {
	Name      string `json:"name"`
	Versions  int    `json:"versions,omitempty"`
	MaxAge    string `json:"maxAge,omitempty"`
	Attribute string `json:"attribute,omitempty"`
}

// Lock returns the lock of a mapping that a file describes; of a default
// layout it returns an error.
func (m *Mapping) Lock() (Lock, error) {
	if m.spec == nil {
		return Lock{}, &SpecError{Code: CodeSyntax, What: "the default layout has no lock"}
	}
	text, err := m.spec.YAML()
	if err != nil {
		return Lock{}, fmt.Errorf("writing the mapping: %w", err)
	}
	sum := sha256.Sum256(text)
	lock := Lock{
		APIVersion: APIVersion, Hash: hex.EncodeToString(sum[:]), Source: m.source, Target: m.target,
		Joiner: m.Joiner(), ListEpoch: ListEpochMillis, Families: []LockFamily{},
	}
	l, _ := m.layout.(*rules)
	for _, f := range m.Families() {
		lf := LockFamily{Name: f.Name, Versions: f.GC.Versions}
		if f.GC.MaxAge > 0 {
			lf.MaxAge = f.GC.MaxAge.String()
		}
		if l != nil {
			lf.Attribute = l.familyAttr[f.Name]
		}
		lock.Families = append(lock.Families, lf)
	}
	if l != nil {
		lock.Shared = slices.Sorted(maps.Keys(l.sharedAttrs))
	}
	return lock, nil
}

// JSON returns the text of the lock file.
func (l Lock) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(l, "", "  ")
	return append(text, '\n'), err
}

// ParseLock is the inverse of JSON, strict.
func ParseLock(text []byte) (Lock, error) {
	var l Lock
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return Lock{}, fmt.Errorf("%s: %w", LockFile, err)
	}
	if l.APIVersion != APIVersion {
		return Lock{}, fmt.Errorf("%s: apiVersion %q; expected %s", LockFile, l.APIVersion, APIVersion)
	}
	return l, nil
}

// Changes says in what a mapping of lock now differs from one of lock l, in
// one line each; nil where rows of one are rows of the other as far as locks
// tell.
func (l Lock) Changes(now Lock) []string {
	var changes []string
	differ := func(what, was, is string) {
		if was != is {
			changes = append(changes, fmt.Sprintf("%s was %s, and is %s", what, was, is))
		}
	}
	differ("the Bigtable table", l.Target, now.Target)
	differ("the DynamoDB table", l.Source, now.Source)
	differ("the joiner", l.Joiner, now.Joiner)
	differ("the first element of a list", fmt.Sprint(l.ListEpoch), fmt.Sprint(now.ListEpoch))
	family := func(f LockFamily) string {
		text := "declared"
		if f.Versions > 0 {
			text += fmt.Sprintf(" versions %d", f.Versions)
		}
		if f.MaxAge != "" {
			text += " maxAge " + f.MaxAge
		}
		if f.Attribute != "" {
			text += " of attribute " + f.Attribute
		}
		return text
	}
	was, is := map[string]string{}, map[string]string{}
	for _, f := range l.Families {
		was[f.Name] = family(f)
	}
	for _, f := range now.Families {
		is[f.Name] = family(f)
	}
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, b := was[name], is[name]
		if a == "" {
			a = "not there"
		}
		if b == "" {
			b = "not there"
		}
		differ("family "+name, a, b)
	}
	differ("the shared family", strings.Join(l.Shared, " "), strings.Join(now.Shared, " "))
	if len(changes) == 0 && l.Hash != now.Hash {
		changes = append(changes, "rules or schema of the mapping are others")
	}
	return changes
}

// The table that says how to read the tables of an instance, and its family.
const (
	SchemaTable  = "_migration_schema"
	SchemaFamily = "m"
)

// SchemaRows are the rows of SchemaTable for the mapping's table: one for the
// table, with the mapping file itself, its hash and joiner; and one for each
// attribute of key and schema, with its type and what it is. Their keys begin
// with the id of the table and a '#'. Whoever finds a table can so read it.
func (m *Mapping) SchemaRows(timeMicros int64) ([]Row, error) {
	lock, err := m.Lock()
	if err != nil {
		return nil, err
	}
	text, err := m.spec.YAML()
	if err != nil {
		return nil, err
	}
	row := func(key string, cells ...string) Row {
		r := Row{Key: []byte(m.target + "#" + key)}
		for i := 0; i < len(cells); i += 2 {
			r.Cells = append(r.Cells, Cell{SchemaFamily, []byte(cells[i]), timeMicros, []byte(cells[i+1])})
		}
		return r
	}
	rows := []Row{row("", "hash", lock.Hash, "joiner", lock.Joiner, "mapping", string(text), "source", m.source)}
	names := map[string]bool{}
	for name := range m.spec.Source.Schema {
		names[name] = true
	}
	for _, a := range m.key.attrs() {
		names[a.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		schema := m.spec.Source.Schema[name]
		part := ""
		for i, a := range m.key.attrs() {
			if a.Name == name {
				schema, part = Schema{Type: a.Type}, [...]string{"hash", "range"}[i]
			}
		}
		cells := []string{}
		if part != "" {
			cells = append(cells, "key", part)
		}
		cells = append(cells, "type", string(schema.text()))
		rows = append(rows, row(name, cells...))
	}
	slices.SortFunc(rows, func(a, b Row) int { return bytes.Compare(a.Key, b.Key) })
	return rows, nil
}

// text is the schema as the mapping file writes it, on one line of JSON.
func (s Schema) text() []byte {
	switch {
	case s.Type == attr.L && s.Elem != nil:
		return append(append([]byte(`{"L":`), s.Elem.text()...), '}')
	case s.Type == attr.M && (s.Keys != nil || s.Elem != nil):
		dst := []byte(`{"M":{`)
		for i, k := range slices.Sorted(maps.Keys(s.Keys)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendPlainJSON(dst, attr.String(k)), ':')
			dst = append(dst, s.Keys[k].text()...)
		}
		dst = append(dst, '}')
		if s.Elem != nil {
			dst = append(append(dst, `,"else":`...), s.Elem.text()...)
		}
		return append(dst, '}')
	}
	return appendPlainJSON(nil, attr.String(s.Type.String()))
}
