package seed

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/s3export"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// schemaName is the file that describes the table of its folder; see package source.
const schemaName = "schema.json"

// maxDescriptionBytes bounds a file of table descriptions, and a model of AWS's design tool.
const maxDescriptionBytes = 16 << 20

// Seed holds tables, and where their items are.
type Seed struct {
	// Mappings are the mappings of fixture folders. The endpoint must serve them.
	Mappings []*mapping.Mapping

	tables []*table // in the order in which they were found
}

// table is a table of a seed.
type table struct {
	name string
	def  *definition // nil: the table must exist
	data []*source.Table
	at   string // the path that named it first
}

// Open reads the descriptions at the given paths, and recognizes the data; [Seed.Fill] reads
// the items. Errors about the content of a file are of type [*source.Error].
func Open(paths ...string) (*Seed, error) {
	s := &Seed{}
	for _, name := range paths {
		if err := s.open(filepath.Clean(name)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Seed) open(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return source.Damaged(source.Unrecognized, source.Position{File: name}, err, "cannot open the seed")
	case !info.IsDir():
		return s.openFile(name)
	case fixtures.Is(os.DirFS(name)):
		return s.openFixture(name)
	}
	return s.openFolder(name)
}

// openFolder opens the folder of one table, or of an export, or each file and folder in it.
func (s *Seed) openFolder(name string) error {
	entries, err := os.ReadDir(name)
	if err != nil {
		return source.Damaged(source.Unrecognized, source.Position{File: name}, err, "cannot read the folder")
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(names, e.Name()) })
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), storeMark) }) {
		return source.Damaged(source.Unrecognized, source.Position{File: name}, nil,
			"the folder is the store of a server, not a seed: serve a copy of it with --data, or serve it with --export-on-exit, which writes a seed")
	}
	described := has(schemaName)
	if described || has(s3export.Folder, s3export.SummaryName, s3export.FilesName, s3export.StartedName) {
		if described {
			if err := s.openFile(filepath.Join(name, schemaName)); err != nil {
				return err
			}
			if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !hidden(e) && e.Name() != schemaName }) {
				return nil
			}
		}
		return s.openSource(name)
	}
	before := len(s.tables)
	for _, e := range entries {
		if hidden(e) {
			continue
		}
		if err := s.open(filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	if len(s.tables) == before && !has(mark) { // an export may have no tables
		return source.Damaged(source.Unrecognized, source.Position{File: name}, nil, "the folder has no seeds: expected %s", expected)
	}
	return nil
}

// hidden reports whether a file belongs to a program, as in the folders of package source.
func hidden(e fs.DirEntry) bool {
	return strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_")
}

// storeMark begins the name of a file that each store has, in the folder of serve --data.
const storeMark = "marker.format-version."

// expected lists the known forms of a seed.
const expected = "the JSON of DescribeTable or CreateTable, items as JSON lines or in another form that tabletop migrate reads, an export to S3, a NoSQL Workbench model, dynamodb_data_model.json or a fixture folder"

// openFixture opens a fixture folder with its mapping.
func (s *Seed) openFixture(name string) error {
	src, m, err := migrate.OpenFixture(os.DirFS(name), source.Options{})
	if err != nil {
		return fmt.Errorf("fixture %s: %w", name, err)
	}
	if m != nil {
		s.Mappings = append(s.Mappings, m)
		s.table(m.SourceTable(), name)
		for _, t := range src.Tables {
			if !t.Named {
				t.Name = m.SourceTable()
			}
		}
	}
	return s.add(src, name)
}

// openFile opens a file by its first JSON value.
func (s *Seed) openFile(name string) error {
	text, first := firstObject(name)
	switch {
	case describesTable(first), first == nil && bytes.Contains(text, []byte(`"KeySchema"`)) && bytes.Contains(text, []byte(`"AttributeDefinitions"`)):
		return s.describe(name, text) // or it reports the mistake in a description
	case isModel(first):
		return s.openModel(name, text)
	}
	return s.openSource(name)
}

// openSource opens an input of package source.
func (s *Seed) openSource(name string) error {
	src, err := source.Open(name, source.Options{})
	if source.DamageOf(err) == source.Unrecognized {
		return fmt.Errorf("%w; a seed is %s", err, expected)
	}
	if err != nil {
		return err
	}
	return s.add(src, name)
}

// add adds the tables of a source, with their descriptions if it declares their keys.
func (s *Seed) add(src *source.Source, name string) error {
	for _, t := range src.Tables {
		of := s.table(t.Name, name)
		of.data = append(of.data, t)
		if of.def == nil && t.Key.Hash.Type != attr.Absent && t.Key.Hash.Name != "" {
			def, err := defined(t, name)
			if err != nil {
				return err
			}
			of.def = def
		}
	}
	return nil
}

// table returns the table with that name, which the file or folder at uses.
func (s *Seed) table(name, at string) *table {
	for _, t := range s.tables {
		if t.name == name {
			return t
		}
	}
	t := &table{name: name, at: at}
	s.tables = append(s.tables, t)
	return t
}

// define gives a table its definition.
func (s *Seed) define(def *definition) error {
	t := s.table(def.schema.Name, def.at.File)
	if t.def != nil {
		return source.Damaged(source.SchemaInvalid, def.at, nil, "table %s is also described at %s: expected one description", t.name, t.def.at)
	}
	t.def = def
	return nil
}

// firstObject returns the text of a file, unless it is too large for a description, and the
// members of the JSON object that it begins with, or nil.
func firstObject(name string) ([]byte, map[string]jsontext.Value) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil // its reader reports the error
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxDescriptionBytes+1))
	if err != nil || len(text) > maxDescriptionBytes {
		return nil, nil
	}
	var first map[string]jsontext.Value
	if json.UnmarshalDecode(jsontext.NewDecoder(bytes.NewReader(text)), &first) != nil {
		return text, nil
	}
	return text, first
}

// describesTable reports whether an object is a description of a table.
func describesTable(object map[string]jsontext.Value) bool {
	for _, name := range []string{"Table", "TableDescription"} {
		var inner map[string]jsontext.Value
		if json.Unmarshal(object[name], &inner) == nil && describesTable(inner) {
			return true
		}
	}
	return object["KeySchema"].Kind() == '[' && object["AttributeDefinitions"].Kind() == '['
}

// isModel reports whether an object is the model of AWS's design tool.
func isModel(object map[string]jsontext.Value) bool {
	var tables []map[string]jsontext.Value
	return json.Unmarshal(object["tables"], &tables) == nil && len(tables) > 0 && describesTable(tables[0])
}

// model is the content of dynamodb_data_model.json, which AWS's MCP server for DynamoDB writes.
// Source: its json_generation_guide.md.
type model struct {
	Tables []jsontext.Value `json:"tables"`
	Items  map[string][]struct {
		PutRequest struct{ Item jsontext.Value }
	} `json:"items"`
}

// openModel opens the model of AWS's design tool.
func (s *Seed) openModel(name string, text []byte) error {
	at := source.Position{File: name}
	var m model
	if err := json.Unmarshal(text, &m); err != nil {
		return source.Damaged(source.SchemaInvalid, at, source.JSONCause(err), "the model cannot be parsed")
	}
	names := make([]string, 0, len(m.Tables))
	for _, t := range m.Tables {
		def, err := parseDefinition(position(name, text, t), t)
		if err != nil {
			return err
		}
		if err := s.define(def); err != nil {
			return err
		}
		names = append(names, def.schema.Name)
	}
	for table, puts := range m.Items {
		if !slices.Contains(names, table) {
			return source.Damaged(source.SchemaInvalid, at, nil, "the model has items of table %s, but describes only %s", table, strings.Join(names, ", "))
		}
		items := make([]attr.Item, len(puts))
		for i, put := range puts {
			item, err := attr.UnmarshalItem(put.PutRequest.Item)
			if err != nil {
				return source.Damaged(source.NotAnItem, position(name, text, put.PutRequest.Item), err, "item %d of table %s is not a PutRequest with an Item in DynamoDB's JSON", i+1, table)
			}
			items[i] = item
		}
		of := s.table(table, name)
		of.data = append(of.data, source.Of(table, of.def.schema.Key, time.Time{}, items))
	}
	return nil
}

// position returns the line of a part of a text. Parts that occur twice have the line of the
// first.
func position(name string, text []byte, part jsontext.Value) source.Position {
	return positionAt(name, text, max(0, bytes.Index(text, part)))
}

// positionAt returns the line of an offset in a text.
func positionAt(name string, text []byte, offset int) source.Position {
	return source.Position{File: name, Line: 1 + bytes.Count(text[:offset], []byte("\n"))}
}

// describe adds the tables that a file describes: consecutive descriptions, each with the
// description of its time to live after it.
func (s *Seed) describe(name string, text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	var at source.Position
	var one []byte
	end := func() error {
		if one == nil {
			return nil
		}
		def, err := parseDefinition(at, one)
		if err != nil {
			return err
		}
		one = nil
		return s.define(def)
	}
	for {
		value, err := d.ReadValue()
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return end()
		}
		begin := d.InputOffset() - int64(len(value))
		if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			begin = syntactic.ByteOffset
		}
		here := positionAt(name, text, int(begin))
		if err != nil {
			return source.Damaged(source.SchemaInvalid, here, source.JSONCause(err), "not JSON: expected the JSON of DescribeTable or CreateTable")
		}
		var object map[string]jsontext.Value
		if json.Unmarshal(value, &object) == nil && (object["TimeToLiveDescription"] != nil || object["TimeToLiveSpecification"] != nil) && !describesTable(object) {
			one = slices.Concat(one, []byte("\n"), value)
			continue
		}
		if err := end(); err != nil {
			return err
		}
		if !describesTable(object) {
			return source.Damaged(source.SchemaInvalid, here, nil, "not the description of a table: expected the JSON of DescribeTable or CreateTable, with AttributeDefinitions and KeySchema")
		}
		at, one = here, slices.Clone(value)
	}
}

// defined returns the definition of a table whose key a source declares.
func defined(t *source.Table, name string) (*definition, error) {
	at := source.Position{File: cmp.Or(t.File, name)}
	r := request{TableName: t.Name, BillingMode: onDemand}
	r.key(&r.KeySchema, t.Key)
	for _, x := range t.Indexes {
		if len(x.MoreKey) > 0 {
			return nil, source.Damaged(source.Unsupported, at, nil, "index %s of table %s: %s; describe the table by the JSON of DescribeTable", x.Name, t.Name, x.Surplus())
		}
		one := index{IndexName: x.Name, Projection: projection{cmp.Or(x.Projection, "ALL"), x.Include}}
		r.key(&one.KeySchema, x.Key)
		if x.Local {
			r.LocalSecondaryIndexes = append(r.LocalSecondaryIndexes, one)
		} else {
			r.GlobalSecondaryIndexes = append(r.GlobalSecondaryIndexes, one)
		}
	}
	return &definition{at: at, schema: source.TableSchema{Name: t.Name, Key: t.Key, Indexes: t.Indexes, TTL: t.TTL}, create: r}, nil
}
