package source

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// schemaName is the file with the table description in the folder of a dump.
const schemaName = "schema.json"

// pages counts the pages of a Scan or Query in a table.
type pages struct {
	n, followed int   // followed: pages that announce another one
	first       error // about the first followed page
}

// end returns an error if every page announces another: the last one is missing.
func (p *pages) end() error {
	if p.followed > 0 && p.followed == p.n {
		return p.first
	}
	return nil
}

// partFiles lists the files below a folder that may hold items, in the order of their paths. It
// skips hidden files, markers and checksums of programs.
func partFiles(t tree, dir string) (files []string, schema string, err error) {
	err = fs.WalkDir(t, dir, func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case name != dir && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
		case base == schemaName:
			schema = name
		case slices.Contains([]string{".crc", ".md5", ".sum"}, path.Ext(base)):
		default:
			files = append(files, name)
		}
		return nil
	})
	return files, schema, err
}

// openFolder opens a folder of pages or part files as one table. It returns nil if the folder
// has no such files.
func openFolder(t tree, dir string, o Options) (*Source, error) {
	files, schema, err := partFiles(t, dir)
	if err != nil {
		return nil, Damaged(Unrecognized, Position{File: t.label(dir)}, err, "cannot read the folder")
	}
	for _, name := range fixtures.SourceNames { // the data of a fixture: openExport has a hint
		if slices.Contains(files, path.Join(dir, path.Base(name))) {
			return nil, nil //nolint:nilnil // the folder is not one of items
		}
	}
	table := &Table{Name: tableNameOf(folderName(t, dir)), Declared: -1}
	var parts []*Table
	for i, name := range files {
		part, err := openPart(t, name, o)
		switch {
		case i == 0 && DamageOf(err) == Unrecognized:
			return nil, nil //nolint:nilnil // the folder is not one of items
		case err != nil:
			return nil, err
		case len(part.Tables) != 1 || part.namesTables():
			return nil, Damaged(Unsupported, Position{File: t.label(name)}, nil, "the file has the format %s, which cannot be read from a folder with other files: pass the file instead of the folder", part.Format)
		}
		if one := part.Tables[0]; one.types != nil {
			if table.types == nil {
				table.types = map[string]attr.Type{}
			}
			one.types, table.doubts = table.types, one.doubts
		}
		parts = append(parts, part.Tables[0])
	}
	if len(parts) == 0 {
		return nil, nil //nolint:nilnil // as above
	}
	table.entries = func(yield func(Entry, error) bool) {
		var all pages
		for _, part := range parts {
			stopped := false
			part.pages = &all
			part.entries(func(e Entry, err error) bool {
				stopped = !yield(e, err) || err != nil && !OfItem(err)
				return !stopped
			})
			if stopped {
				return
			}
		}
		if err := all.end(); err != nil {
			yield(Entry{}, err)
		}
	}
	src := &Source{Format: formatFolder, Tables: []*Table{table}}
	if schema != "" {
		return src, src.describe(t, schema)
	}
	return src, nil
}

// folderName returns the table name for a folder: its own, or that of the parent if it is
// called data.
func folderName(t tree, dir string) string {
	whole := path.Clean(t.label(dir))
	if path.Base(whole) == s3export.DataFolder && path.Dir(whole) != "." {
		whole = path.Dir(whole)
	}
	return path.Base(whole)
}

// openPart opens one file of a folder.
func openPart(t tree, name string, o Options) (*Source, error) {
	if isCSV(name) {
		return openCSV(t, name, o.CSV)
	}
	return openFile(t, name, o.Plain)
}

// describe sets the key and the indexes of a folder's table from its description.
func (s *Source) describe(t tree, name string) error {
	d, err := readSchema(t, name)
	if err != nil {
		return err
	}
	table := s.Tables[0]
	if d.Name != "" {
		table.Name = d.Name
	}
	table.declare(d, t.label(name))
	return nil
}

// describeExport sets the key and the indexes of the table of an export from a description beside
// the folder of exports, if there is one of this table.
func (t *Table) describeExport(files tree, export string) error {
	name := path.Join(path.Dir(path.Dir(export)), schemaName)
	if _, err := fs.Stat(files, name); isNotExist(err) {
		return nil
	}
	d, err := readSchema(files, name)
	if err == nil && d.Name == t.Name {
		t.declare(d, files.label(name))
	}
	return err
}

// readSchema reads the description of a folder's table.
func readSchema(t tree, name string) (*TableSchema, error) {
	text, err := fs.ReadFile(t, name)
	if err != nil {
		return nil, Damaged(Unrecognized, Position{File: t.label(name)}, err, "cannot read the description of the table")
	}
	return ParseTableSchema(t.label(name), text)
}

// declare sets what a description declares; from is its name.
func (t *Table) declare(d *TableSchema, from string) {
	t.Key, t.Indexes, t.TTL, t.KeyFrom = d.Key, d.Indexes, d.TTL, "declared by "+from
}

// errNoKey returns the error for plain JSON without a declared key, which no input of this
// form declares.
func errNoKey(at string) error {
	return Damaged(KeyUnknown, Position{File: at}, errors.New("declare it with --key PK[,SK] or --table-schema FILE"), "plain JSON needs a declared key")
}
