package source

import (
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// Increment is a complete incremental export: the changes of one table in a window of time.
type Increment struct {
	Table    string    // name of the DynamoDB table
	TableID  string    // its id; "" if the manifest lacks it
	Name     string    // its folder
	From, To time.Time // the window; writes at To are not in it

	part exportPart
	tree tree
}

// Increments is a folder into which incremental exports arrive.
type Increments struct {
	tree   tree
	opened map[string]*Increment // by folder; nil for full exports
}

// OpenIncrements opens a folder in the local file system.
func OpenIncrements(dir string) (*Increments, error) {
	if err := remote(dir); err != nil {
		return nil, err
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, Damaged(Unrecognized, Position{File: dir}, err, "cannot open the folder")
	case !info.IsDir():
		return nil, Damaged(Unrecognized, Position{File: dir}, nil, "expected a folder with incremental exports, not a file")
	}
	return &Increments{tree: tree{os.DirFS(dir), dir}, opened: map[string]*Increment{}}, nil
}

// Find returns the complete incremental exports in and below the folder. Pending are the folders of
// exports whose manifests or data files are still to come.
func (f *Increments) Find() (complete []*Increment, pending []string, err error) {
	dirs, err := findExports(f.tree, ".", maxExportDepth)
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range dirs {
		x, known := f.opened[dir]
		if !known {
			info, err := fs.Stat(f.tree, path.Join(dir, s3export.SummaryName))
			if isNotExist(err) || err == nil && info.Size() == 0 {
				pending = append(pending, f.tree.label(dir))
				continue
			}
			part, err := openOneExport(f.tree, dir)
			if d := DamageOf(err); d == ManifestMissing || d == DataFileMissing { // a copy of an export has no order
				pending = append(pending, f.tree.label(dir))
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			if part.incremental {
				x = &Increment{Table: part.table, TableID: part.id, Name: f.tree.label(dir), From: part.from, To: part.to, part: part, tree: f.tree}
			}
			f.opened[dir] = x
		}
		if x != nil {
			complete = append(complete, x)
		}
	}
	return complete, pending, nil
}

// Changes yields the changes in the order of the export, one for each item. It checks counts
// and checksums.
func (x *Increment) Changes(yield func(Change) error) error {
	return x.part.changes(x.tree, func(c itemChange) error {
		change := Change{Key: c.keys, Now: c.new, Position: c.at, Time: time.UnixMicro(c.micros).UTC()}
		if c.old != nil {
			change.Was = []attr.Item{c.old}
		}
		return yield(change)
	})
}
