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
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// MaxItemBytes bounds the JSON text of one item. DynamoDB's items end at 400 KB
// of binary content; the costliest text form of that (empty elements, escapes)
// stays below 8 MiB.
const MaxItemBytes = 8 << 20

// Position is a place in an input.
type Position struct {
	File string // the path, as far as the source knows it
	Line int    // 1-based; 0: the file as a whole
}

// String returns "FILE:LINE".
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Entry is one item of a source and where it stands.
type Entry struct {
	Item     attr.Item // as it was read
	Position Position  // where it stands

	Text []byte // the JSON of Item, good until the next entry
}

// Index is a secondary index that a table description declares.
type Index struct {
	Name       string            // in DynamoDB
	Key        mapping.KeySchema // of the index
	MoreKey    []string          // what its key has beside one HASH and one RANGE attribute: then no mapping lays it out
	Local      bool              // it has the hash key of the table
	Projection string            // ALL, KEYS_ONLY or INCLUDE
	Include    []string          // attributes of an INCLUDE projection
}

// Surplus says what the key of the index has that no mapping lays out, "" for nothing.
func (x Index) Surplus() string {
	if len(x.MoreKey) == 0 {
		return ""
	}
	return fmt.Sprintf("its key has %s besides %s", strings.Join(x.MoreKey, " and "), KeyText(x.Key))
}

// Table is one table of a source. Its items can be read any number of times;
// each time they stream from the input.
type Table struct {
	Name string // of the DynamoDB table
	// Key is the declared key schema. Its Hash.Name is "" where the input
	// declares none; a Type is attr.Absent where only the name is known.
	Key     mapping.KeySchema
	Indexes []Index // that are declared
	// TTL is the attribute that items expire by, "" where none is declared.
	TTL string
	// ExportTime is the moment that the data stands for; zero if unknown.
	ExportTime time.Time
	// FullTime is the moment of the full export that the incremental ones up to
	// ExportTime follow; zero where there are none.
	FullTime time.Time
	// Declared is the number of items that the input itself announces, -1 if
	// it announces none.
	Declared int64
	// KeyFrom says where Key was found, for reports.
	KeyFrom string

	entries func(yield func(Entry, error) bool) // goes on after an error of one item (OfItem), if yield wants
	changes func(yield func(Change, error) bool)
	export  *exportPart               // the export that the entries are of; nil where they are not of one full export alone
	tree    tree                      // where the export is
	pages   *pages                    // of the folder that the table is a file of; nil for one file alone
	File    string                    // what messages about the table as a whole name
	Named   bool                      // Name is what the input or its description says
	types   map[string]attr.Type      // of columns that do not say theirs; nil but for CSV
	doubts  *atomic.Pointer[[]string] // Doubts; nil but for CSV
	Lenient bool                      // Entries passes over items that are at fault themselves
}

// Of is a table of items in memory, with their key; at is the moment that they stand
// for.
func Of(name string, key mapping.KeySchema, at time.Time, items []attr.Item) *Table {
	return &Table{Name: name, Key: key, ExportTime: at, Declared: int64(len(items)), entries: func(yield func(Entry, error) bool) {
		for i, item := range items {
			if !yield(Entry{Item: item, Position: Position{File: name, Line: i + 1}, Text: attr.AppendItemJSON(nil, item)}, nil) {
				return
			}
		}
	}}
}

// As is the table by the key and the name of its mapping; a name of "" keeps its own.
func (t *Table) As(name string, key mapping.KeySchema) *Table {
	keyed := *t
	keyed.Key = key
	if name != "" {
		keyed.Name = name
	}
	return &keyed
}

// SetColumnType says the type of an attribute to inputs that do not tell it, which is
// CSV alone.
func (t *Table) SetColumnType(name string, typ attr.Type) {
	if t.types != nil {
		t.types[name] = typ
	}
}

// Doubts returns what a full read of the entries found that is allowed and probably not
// meant: columns of numbers without a type, and a header that looks like a record.
func (t *Table) Doubts() []string {
	if t.doubts == nil || t.doubts.Load() == nil {
		return nil
	}
	return *t.doubts.Load()
}

// Changes streams what incremental exports made of the items that they changed, in
// bounded memory; nothing of any other source. Errors are those of Entries.
func (t *Table) Changes(yield func(Change, error) bool) {
	if t.changes != nil {
		t.changes(yield)
	}
}

// Entries streams the items of the table in the order of the input. It checks
// each item's form and, where the key is declared, that the item has it. After
// an error, an [Error] unless reading itself failed, it ends.
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

// All yields the entries like Entries, but continues after an error in a single item. With
// an error, the entry is what was found there.
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
		if k.Name == "" { // no key is declared
			continue
		}
		v, ok := e.Item[k.Name]
		switch {
		case !ok:
			return Damaged(KeyMissing, e.Position, nil, "the item has no attribute %q, which is part of the key of table %s", k.Name, t.Name)
		case k.Type != attr.Absent && v.Type != k.Type:
			return Damaged(KeyTypeMismatch, e.Position, nil, "key attribute %q is of type %s, the key of table %s declares %s", k.Name, v.Type, t.Name, k.Type)
		case v.Type != attr.S && v.Type != attr.N && v.Type != attr.B:
			return Damaged(KeyTypeMismatch, e.Position, nil, "key attribute %q is of type %s, a key is S, N or B", k.Name, v.Type)
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

// CheckSize refuses an item that no DynamoDB table of the key can hold.
func (e Entry) CheckSize(key mapping.KeySchema) error {
	for i, k := range key.Attrs() {
		limit := [2]int{maxHashBytes, maxSortBytes}[i]
		if v := e.Item[k.Name]; v.Type != attr.N && len(v.Str) > limit {
			return Damaged(ItemBeyondLimit, e.Position, nil, "key attribute %q has %d bytes: DynamoDB takes at most %d", k.Name, len(v.Str), limit)
		}
	}
	if len(e.Text) <= maxItemSize { // which is never shorter than the item
		return nil
	}
	if size := e.Item.Size(); size > maxItemSize {
		return Damaged(ItemBeyondLimit, e.Position, nil, "the item has %d bytes: DynamoDB takes at most %d", size, maxItemSize)
	}
	return nil
}

// formatFolder is the format of a folder of pages or part files.
const formatFolder = "folder"

// Source is an input with its tables.
type Source struct {
	// Format is what the input was recognized as: "s3-export",
	// "s3-incremental-export", "json-lines", "ion-text", "json-items", "batch-write",
	// "workbench", "csv" or "folder", of pages or part files.
	Format string
	// Path is the path that was opened.
	Path   string
	Tables []*Table // in the order of the input
	// Integrity says what the input lets a reader check of itself, besides
	// its form; reading all entries checks it.
	Integrity string

	Asked string // Options.Table
}

// Options are what a caller knows about an input that does not say it
// itself. The zero value is ready to use. What they say must not contradict
// each other.
type Options struct {
	// Key names the key attributes, "PK" or "PK,SK". It wins over what the
	// input says.
	Key string
	// TableSchema is the JSON of a DescribeTable answer or of a CreateTable
	// request, with the answer of DescribeTimeToLive behind it where items expire; TableSchemaFile is its name in messages. It wins over what the
	// input says of the key, and must name the same table.
	TableSchema     []byte
	TableSchemaFile string
	// Table keeps one table of a source that has several, and names the
	// table of a source that names none.
	Table string
	// Plain says that items are plain JSON, without type tags: numbers become N, lists L and
	// objects M. The key must be declared.
	Plain bool
	// CSV is how a CSV file is written.
	CSV CSVOptions
}

// scheme is how the address of something that is not in a file system begins.
var scheme = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]+)://`)

// remote refuses an address with what brings its content here.
func remote(name string) error {
	m := scheme.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	hint := "copy it here, and name the copy"
	switch strings.ToLower(m[1]) {
	case "s3":
		hint = fmt.Sprintf("copy it here (aws s3 sync %s FOLDER), and name the folder", name)
	case "gs":
		hint = fmt.Sprintf("copy it here (gcloud storage cp --recursive %s FOLDER), and name the folder", name)
	case "http", "https":
		hint = fmt.Sprintf("fetch it (curl -O %s), and name the file", name)
	case "file":
		hint = "name the path alone"
	case "dynamodb", "arn":
		hint = "export the table to S3, copy the export here, and name the folder"
	}
	return Damaged(Unsupported, Position{File: name}, nil, "sources are read from files, not from %s:// addresses: %s", m[1], hint)
}

// Open opens an input of the local file system: a file or a folder.
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

// openExportFolder opens the folder of one export: the data of incremental ones is beside it.
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

// OpenFS opens an input inside fsys: the file or folder called name, "." for
// all of it.
func OpenFS(fsys fs.FS, name string, o Options) (*Source, error) {
	return openTree(fsys, name, "", o)
}

// tree is a file system with the name that its root has for the user.
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

// apply puts what the caller declared over what the source says.
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
				return Damaged(SchemaInvalid, Position{File: s.Path}, nil, "%q cannot name a table: 3 to 255 letters, digits and _.- can", o.Table)
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
			return Damaged(SchemaInvalid, Position{File: s.Path}, nil, "the key given is %s, but the key %s is %s", key, t.KeyFrom, KeyText(declared))
		}
		t.Key = lens.KeySchema{Hash: lens.KeyAttr{Name: hash}, Range: lens.KeyAttr{Name: rng}}
		t.KeyFrom = "given by the caller"
		// A type that the input declares for the same attribute still holds.
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
		t.Key, t.Indexes, t.TTL, t.KeyFrom = d.Key, d.Indexes, d.TTL, "declared by "+file
	}
	if !applied {
		return Damaged(SchemaInvalid, Position{File: file}, nil, "the schema is that of table %s, the source %s has %s", d.Name, s.Path, s.tableNames())
	}
	return nil
}

// tableNameOf makes a table name of a file name: its letters, digits and
// "_.-", without the suffixes that say only how the file is written.
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

// isNotExist tells a missing file from one that cannot be read.
func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// KeyText is a key as messages tell it, "PK (S), SK (N)", types where they are known.
func KeyText(k mapping.KeySchema) string {
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

// TableName is what a DynamoDB table can be called; a source may call its
// tables otherwise.
var TableName = sync.OnceValue(func() *regexp.Regexp { // large: it counts to 255
	return regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
})
