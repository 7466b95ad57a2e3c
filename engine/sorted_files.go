package engine

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// sortedFileBytes is the approximate size of a file of sortedFiles.
const sortedFileBytes = 64 << 20

// sortedFiles writes ascending keys to files that a store can ingest.
type sortedFiles struct {
	d     *DB
	dir   string // must exist
	files []string

	w    *sstable.Writer // of the last file; nil if that is complete
	keys int             // in it
}

// set adds a key. It does not retain its arguments.
func (f *sortedFiles) set(key, value []byte) error {
	if f.w == nil {
		name := f.d.fs.PathJoin(f.dir, fmt.Sprintf("%d.sst", len(f.files)))
		file, err := f.d.fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		lastLevel := len(f.d.options.Levels) - 1
		f.w = sstable.NewWriter(objstorageprovider.NewFileWritable(file),
			f.d.options.MakeWriterOptions(lastLevel, f.d.pebble.TableFormat()))
		f.files, f.keys = append(f.files, name), 0
	}
	if err := f.w.Set(key, value); err != nil {
		return errors.Join(err, f.close())
	}
	if f.keys++; f.keys%1024 == 0 && f.w.Raw().EstimatedSize() >= sortedFileBytes {
		return f.close()
	}
	return nil
}

// close completes the last file.
func (f *sortedFiles) close() error {
	if f.w == nil {
		return nil
	}
	w := f.w
	f.w = nil
	return w.Close()
}
