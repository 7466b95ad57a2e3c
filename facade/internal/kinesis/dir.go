package kinesis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tabletop-emu/tabletop/internal/filelock"
)

// Dir is a folder in which each stream is a file, <stream>.jsonl, with one record per
// line. Every stream exists. Several processes may share a folder: each locks a file to
// write to it.
type Dir struct{ root *os.Root }

// OpenDir opens a folder, and creates it if it does not exist.
func OpenDir(path string) (*Dir, error) {
	const private = 0o750
	if err := os.MkdirAll(path, private); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// Close closes the folder.
func (d *Dir) Close() error { return d.root.Close() }

// Has implements Sink.
func (*Dir) Has(context.Context, string) (bool, error) { return true, nil }

// Put implements Sink. The records are on disk when it returns.
func (d *Dir) Put(_ context.Context, stream string, records []Record) (taken []bool, err error) {
	const private = 0o640
	f, err := d.root.OpenFile(stream+".jsonl", os.O_RDWR|os.O_CREATE|os.O_APPEND, private)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // it releases the lock
	if err := filelock.Lock(f); err != nil {
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	if err := cutLine(f); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	taken = make([]bool, len(records))
	var text []byte
	for i, r := range records {
		text = append(append(text, r.Data...), '\n')
		taken[i] = true
	}
	if _, err := f.Write(text); err != nil {
		return nil, err
	}
	return taken, f.Sync()
}

// cutLine removes the incomplete line of a killed process.
func cutLine(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	block := int64(1) // usually the file ends with a complete line
	buf := make([]byte, 64<<10)
	for at := end; at > 0; block = int64(len(buf)) {
		n := min(at, block)
		at -= n
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			if whole := at + int64(i) + 1; whole < end {
				return f.Truncate(whole)
			}
			return nil
		}
	}
	return f.Truncate(0)
}
