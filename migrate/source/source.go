package source

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// MaxItemBytes bounds the JSON text of one item. A DynamoDB item has at most 400 KB of
// binary content, so its longest text, with empty elements and escapes, is below 8 MiB.
const MaxItemBytes = 8 << 20

// Position is a position in an input.
type Position struct {
	File string // path of the file as the source knows it
	Line int    // line number, from 1; 0 means the whole file
}

// String returns "FILE:LINE", or "FILE" without a line.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Entry is one item of a source with its position.
type Entry struct {
	Item     attr.Item // item as it was read
	Position Position  // position of the item

	Text []byte // JSON of Item, valid until the next entry; empty in entries from memory (see Held)
}

// Index is a secondary index that a table description declares.
type Index struct {
	Name       string         // name in DynamoDB
	Key        attr.KeySchema // key of the index
	MoreKey    []string       // key attributes beyond one HASH and one RANGE, which mappings cannot lay out
	Local      bool           // whether it is a local index, which has the hash key of the table
	Projection string         // kind of projection: ALL, KEYS_ONLY or INCLUDE
	Include    []string       // attributes that an INCLUDE projection adds
}

// Surplus describes the key attributes of the index that mappings cannot lay out. It
// returns "" if a mapping can lay out all of them.
func (x Index) Surplus() string {
	if len(x.MoreKey) == 0 {
		return ""
	}
	return fmt.Sprintf("its key has %s besides %s", strings.Join(x.MoreKey, " and "), KeyText(x.Key))
}

// Table is one table of a source. Its items can be read any number of times, and are
// streamed from the input each time.
type Table struct {
	Name string // name of the DynamoDB table
	// Key is the declared key schema. Its Hash.Name is "" if the input declares no key. A
	// Type is attr.Absent if only the name of the attribute is known.
	Key     attr.KeySchema
	Indexes []Index // indexes that the input declares
	// TTL is the expiry attribute, or "" if none is declared.
	TTL string
	// ExportTime is the time of the data, or zero if it is unknown.
	ExportTime time.Time
	// FullTime is the time of the full export, if incremental exports or change records
	// update it up to ExportTime. Otherwise it is zero.
	FullTime time.Time
	// Declared is the number of items that the input declares, or -1 if it declares none.
	Declared int64
	// KeyFrom is the origin of Key, for reports.
	KeyFrom string

	entries func(yield func(Entry, error) bool) // continues after an error of one item (OfItem) while yield returns true
	changes func(yield func(Change, error) bool)
	export  *exportPart               // the only full export of the entries, or nil
	tree    tree                      // the tree of the export
	pages   *pages                    // of the folder with the table's file; nil for a single file
	File    string                    // name for messages about the whole table
	Named   bool                      // whether Name comes from the input or its description
	types   map[string]attr.Type      // of untyped columns; nil except for CSV
	doubts  *atomic.Pointer[[]string] // the result of Doubts; nil except for CSV
	Lenient bool                      // whether Entries skips faulty items
	reading *atomic.Pointer[input]    // the table's file while it is read; nil for other tables
}

// Of returns a table with the given items and key in memory. at is the time of the data.
func Of(name string, key attr.KeySchema, at time.Time, items []attr.Item) *Table {
	return &Table{Name: name, Key: key, ExportTime: at, Declared: int64(len(items)), entries: func(yield func(Entry, error) bool) {
		for i, item := range items {
			if !yield(Entry{Item: item, Position: Position{File: name, Line: i + 1}, Text: attr.AppendItemJSON(nil, item)}, nil) {
				return
			}
		}
	}}
}

// As returns a copy of the table with the given key and name. If name is "", the table keeps
// its present name.
func (t *Table) As(name string, key attr.KeySchema) *Table {
	keyed := *t
	keyed.Key = key
	if name != "" {
		keyed.Name = name
	}
	return &keyed
}

// SetColumnType sets the type of an attribute for an input whose columns can lack a type.
// Only CSV is such an input.
func (t *Table) SetColumnType(name string, typ attr.Type) {
	if t.types != nil {
		t.types[name] = typ
	}
}

// Doubts returns what looks suspicious in a CSV file: untyped columns of numbers, and a
// header that looks like a record. It returns nil before the first complete pass over the
// entries.
func (t *Table) Doubts() []string {
	if t.doubts == nil || t.doubts.Load() == nil {
		return nil
	}
	return *t.doubts.Load()
}

// Changes streams the changes of incremental exports or change records in bounded memory,
// one change per item. Other sources yield none. Errors are the same as those of Entries.
func (t *Table) Changes(yield func(Change, error) bool) {
	if t.changes != nil {
		t.changes(yield)
	}
}

// Entries streams the items of the table in the order of the input. It checks the form of
// each item and, if a key is declared, that the item has it. It stops after the first
// error, which is an [Error] unless reading itself failed.
func (t *Table) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		t.All(func(e Entry, err error) bool {
			if err != nil && t.Lenient && OfItem(err) {
				return true
			}
			if err != nil {
				yield(Entry{}, err)
				return false
			}
			return yield(e, nil)
		})
	}
}

// All streams the entries like Entries, but continues after an error that concerns a
// single item. The entry then holds the faulty text.
func (t *Table) All(yield func(Entry, error) bool) {
	t.entries(func(e Entry, err error) bool {
		if err == nil {
			err = t.checkKey(e)
		}
		return yield(e, err)
	})
}

func (t *Table) checkKey(e Entry) error {
	for _, k := range t.Key.Attrs() {
		if k.Name == "" { // no declared key
			continue
		}
		v, ok := e.Item[k.Name]
		switch {
		case !ok:
			return Damaged(KeyMissing, e.Position, nil, "the item has no attribute %q, which is part of the key of table %s", k.Name, t.Name)
		case k.Type != attr.Absent && v.Type != k.Type:
			return Damaged(KeyTypeMismatch, e.Position, nil, "key attribute %q is of type %s, but the key of table %s declares %s", k.Name, v.Type, t.Name, k.Type)
		case v.Type != attr.S && v.Type != attr.N && v.Type != attr.B:
			return Damaged(KeyTypeMismatch, e.Position, nil, "key attribute %q is of type %s: a key must be S, N or B", k.Name, v.Type)
		case v.Str == "":
			return Damaged(KeyMissing, e.Position, nil, "key attribute %q is empty", k.Name)
		}
	}
	return nil
}

// Limits of DynamoDB. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxItemSize  = 400 << 10
	maxHashBytes = 2048
	maxSortBytes = 1024
)

// CheckSize returns an error if the item exceeds the limits of every DynamoDB table with
// the given key.
func (e Entry) CheckSize(key attr.KeySchema) error {
	for i, k := range key.Attrs() {
		limit := [2]int{maxHashBytes, maxSortBytes}[i]
		if v := e.Item[k.Name]; v.Type != attr.N && len(v.Str) > limit {
			return Damaged(ItemBeyondLimit, e.Position, nil, "key attribute %q has %d bytes: DynamoDB allows at most %d", k.Name, len(v.Str), limit)
		}
	}
	if len(e.Text) > 0 && len(e.Text) <= maxItemSize { // the text is never shorter than the item; held entries have none
		return nil
	}
	if size := e.Item.Size(); size > maxItemSize {
		return Damaged(ItemBeyondLimit, e.Position, nil, "the item has %d bytes: DynamoDB allows at most %d", size, maxItemSize)
	}
	return nil
}

// formatFolder is the format of a folder of pages or part files.
const formatFolder = "folder"

// Source is an input and the tables in it.
type Source struct {
	// Format is the format of the input: "s3-export", "s3-incremental-export",
	// "s3-export-with-change-records", "json-lines", "ion-text", "json-items",
	// "batch-write", "workbench", "csv", or "folder" for pages or part files.
	Format string
	// Path is the path that was opened.
	Path   string
	Tables []*Table // tables in the order of the input
	// Integrity describes the checks that the input allows besides its form, such as
	// checksums. Reading all entries performs these checks.
	Integrity string

	Asked string // table name requested in Options.Table
}

// Options supplies facts that an input does not contain. The zero value is ready to use.
// Options must not contradict each other.
type Options struct {
	// Key names the key attributes, as "PK" or "PK,SK". It overrides the key that the
	// input declares.
	Key string
	// TableSchema is the JSON of a DescribeTable response or a CreateTable request. If
	// items expire, the response of DescribeTimeToLive follows it. It overrides the key
	// that the input declares, and must name the same table. TableSchemaFile is its file
	// name in messages.
	TableSchema     []byte
	TableSchemaFile string
	// Table selects one table of a source that has several tables, or names the table of
	// a source that has no name for it.
	Table string
	// Plain means that items are plain JSON, without type tags. Numbers become N, lists
	// become L, and objects become M. The key must be declared.
	Plain bool
	// CSV describes the format of a CSV file.
	CSV CSVOptions
}

// scheme matches the beginning of an address outside the file system.
var scheme = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]+)://`)

// remote rejects an address, with advice on how to copy its content.
func remote(name string) error {
	m := scheme.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	hint := "copy it here, and pass the copy"
	switch strings.ToLower(m[1]) {
	case "s3":
		hint = fmt.Sprintf("copy it here (aws s3 sync %s FOLDER), and pass the folder", name)
	case "gs":
		hint = fmt.Sprintf("copy it here (gcloud storage cp --recursive %s FOLDER), and pass the folder", name)
	case "http", "https":
		hint = fmt.Sprintf("fetch it (curl -O %s), and pass the file", name)
	case "file":
		hint = "pass only the path"
	case "dynamodb", "arn":
		hint = "export the table to S3, copy the export here, and pass the folder"
	}
	return Damaged(Unsupported, Position{File: name}, nil, "sources are read from files, not from %s:// addresses: %s", m[1], hint)
}

// Open opens a file or folder in the local file system.
func Open(name string, o Options) (*Source, error) {
	if err := remote(name); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, Damaged(Unrecognized, Position{File: name}, err, "cannot open the source")
	}
	if info.IsDir() {
		if isExport(tree{FS: os.DirFS(name)}, ".") {
			return openExportFolder(name, o)
		}
		return openTree(os.DirFS(name), ".", name, o)
	}
	dir, base := filepath.Split(name)
	if dir == "" {
		dir = "."
	}
	return openTree(os.DirFS(dir), base, filepath.Clean(dir), o)
}

// openExportFolder opens the folder of one export; the data of incremental exports is beside
// it.
func openExportFolder(name string, o Options) (*Source, error) {
	whole, err := filepath.Abs(name)
	if err == nil {
		whole, err = filepath.EvalSymlinks(whole)
	}
	if err != nil {
		return nil, Damaged(Unrecognized, Position{File: name}, err, "cannot open the source")
	}
	dir, base := filepath.Split(whole)
	root := filepath.Clean(dir)
	if name = filepath.Clean(name); filepath.Base(name) == base {
		root = filepath.Dir(name)
	}
	return openTree(os.DirFS(dir), base, root, o)
}

// OpenFS opens the file or folder called name in fsys. The name "." means all of fsys.
func OpenFS(fsys fs.FS, name string, o Options) (*Source, error) {
	return openTree(fsys, name, "", o)
}

// tree is a file system with the user's name for its root.
type tree struct {
	fs.FS
	root string
}

func (t tree) label(name string) string {
	switch {
	case t.root == "" || t.root == ".":
		return name
	case name == ".":
		return t.root
	}
	return filepath.ToSlash(t.root) + "/" + name
}

func openTree(fsys fs.FS, name, root string, o Options) (*Source, error) {
	t := tree{fsys, root}
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, Damaged(Unrecognized, Position{File: t.label(name)}, err, "cannot open the source")
	}
	var src *Source
	switch {
	case info.IsDir():
		if found, failed := findExports(t, name, maxExportDepth); failed == nil && len(found) == 0 {
			src, err = openFolder(t, name, o)
		}
		if src == nil && err == nil {
			src, err = openExport(t, name)
		}
	case isCSV(name):
		src, err = openCSV(t, name, o.CSV)
	default:
		src, err = openFile(t, name, o.Plain)
	}
	if err != nil {
		return nil, err
	}
	src.Path = t.label(name)
	for _, table := range src.Tables {
		table.File, table.Named = src.Path, src.namesTables()
	}
	if err := src.apply(o); err != nil {
		return nil, err
	}
	if o.Plain && src.Tables[0].Key.Hash.Name == "" {
		return nil, errNoKey(src.Path)
	}
	return src, nil
}

// apply overrides the facts of the source by the caller's options.
func (s *Source) apply(o Options) error {
	s.Asked = o.Table
	if o.Table != "" {
		var kept []*Table
		for _, t := range s.Tables {
			if t.Name == o.Table {
				kept = append(kept, t)
			}
		}
		switch {
		case len(kept) > 0:
			s.Tables = kept
		case len(s.Tables) == 1 && !s.namesTables():
			if !TableName().MatchString(o.Table) {
				return Damaged(SchemaInvalid, Position{File: s.Path}, nil, "%q is not a valid table name: want 3 to 255 letters, digits and _.-", o.Table)
			}
			s.Tables[0].Name = o.Table
		default:
			return Damaged(Unrecognized, Position{File: s.Path}, nil, "the source has no table %s, only %s", o.Table, s.tableNames())
		}
	}
	if len(o.TableSchema) > 0 {
		if err := s.applySchema(o); err != nil {
			return err
		}
	}
	if o.Key != "" {
		if err := s.applyKey(o.Key, len(o.TableSchema) > 0); err != nil {
			return err
		}
	}
	return nil
}

// tableNames lists the tables for messages.
func (s *Source) tableNames() string {
	names := make([]string, len(s.Tables))
	for i, t := range s.Tables {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

func (s *Source) namesTables() bool {
	return s.Format != "json-lines" && s.Format != formatFolder && s.Format != formatIon && s.Format != "json-items" && s.Format != "csv"
}

func (s *Source) applyKey(key string, schema bool) error {
	hash, rng, _ := strings.Cut(key, ",")
	hash, rng = strings.TrimSpace(hash), strings.TrimSpace(rng)
	if hash == "" || strings.Contains(rng, ",") || hash == rng {
		return Damaged(SchemaInvalid, Position{File: s.Path}, nil, "the key %q is not PK or PK,SK", key)
	}
	for _, t := range s.Tables {
		declared := t.Key
		if schema && (declared.Hash.Name != hash || declared.Range.Name != rng) {
			return Damaged(SchemaInvalid, Position{File: s.Path}, nil, "the given key is %s, but the key %s is %s", key, t.KeyFrom, KeyText(declared))
		}
		t.Key = attr.KeySchema{Hash: attr.KeyAttr{Name: hash}, Range: attr.KeyAttr{Name: rng}}
		t.KeyFrom = "given by the caller"
		// A type that the input declares for the same attribute stays.
		for _, k := range declared.Attrs() {
			if k.Name == hash {
				t.Key.Hash.Type = k.Type
			}
			if k.Name == rng && rng != "" {
				t.Key.Range.Type = k.Type
			}
		}
	}
	return nil
}

func (s *Source) applySchema(o Options) error {
	file := o.TableSchemaFile
	if file == "" {
		file = "table schema"
	}
	d, err := ParseTableSchema(file, o.TableSchema)
	if err != nil {
		return err
	}
	applied := false
	for _, t := range s.Tables {
		switch {
		case d.Name == "" || d.Name == t.Name:
		case !s.namesTables() && o.Table == "":
			t.Name, t.Named = d.Name, true
		default:
			continue
		}
		applied = true
		t.declare(d, file)
	}
	if !applied {
		return Damaged(SchemaInvalid, Position{File: file}, nil, "the schema is for table %s, but the source %s has %s", d.Name, s.Path, s.tableNames())
	}
	return nil
}

// tableNameOf makes a table name from a file name: its letters, digits and "_.-", without
// suffixes of the format.
func tableNameOf(name string) string {
	base := path.Base(name)
	for _, suffix := range []string{".gz", ".zst", ".json", ".jsonl", ".ndjson", ".ion", ".csv", ".tsv"} {
		base = strings.TrimSuffix(base, suffix)
	}
	base = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '-'
	}, base)
	for len(base) < 3 { // DynamoDB's shortest table name
		base += "_"
	}
	return base[:min(len(base), 50)] // Bigtable's longest
}

// isNotExist reports whether a file is missing, rather than unreadable.
func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// KeyText formats a key for messages as "PK (S), SK (N)", leaving out unknown types.
func KeyText(k attr.KeySchema) string {
	var parts []string
	for _, a := range k.Attrs() {
		switch {
		case a.Name == "":
		case a.Type == attr.Absent:
			parts = append(parts, a.Name)
		default:
			parts = append(parts, fmt.Sprintf("%s (%s)", a.Name, a.Type))
		}
	}
	return strings.Join(parts, ", ")
}

// TableName matches the names that DynamoDB allows for tables. Tables of a source may
// have other names.
var TableName = sync.OnceValue(func() *regexp.Regexp { // large: it counts to 255
	return regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
})
