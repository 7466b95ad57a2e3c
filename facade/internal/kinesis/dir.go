package kinesis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/filelock"
)

// Dir is a folder in which each stream is a file, <stream>.jsonl, with one record per
// line. Every stream exists. Several processes may share a folder: each locks a file to
// write to it. Dir implements [Noter] by the files deliveredFile and deliveriesFile.
type Dir struct{ root *os.Root }

const (
	// deliveredFile has one line with a time: the folder has all records before it. `migrate follow` reads
	// it, so that the watermark of a quiet table moves without a record.
	deliveredFile = "_delivered"

	// deliveriesFile has the times of the running deliveries of all processes, as a JSON object. deliveredFile
	// has the earliest of them.
	deliveriesFile = "_deliveries"
)

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

// Note implements Noter.
func (d *Dir) Note(delivery string, before time.Time) error {
	return d.change(func(all map[string]time.Time) { all[delivery] = before.UTC() })
}

// Forget implements Noter.
func (d *Dir) Forget(delivery string) error {
	return d.change(func(all map[string]time.Time) { delete(all, delivery) })
}

// change changes the times of the deliveries, and replaces deliveredFile.
func (d *Dir) change(change func(map[string]time.Time)) (err error) {
	const private = 0o640
	f, err := d.root.OpenFile(deliveriesFile, os.O_RDWR|os.O_CREATE, private)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // it releases the lock
	if err := filelock.Lock(f); err != nil {
		return fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	all := map[string]time.Time{}
	// A killed process may leave a part of a longer text after the first value. A crash of the machine may leave any
	// bytes: then all deliveries begin again, and note their times.
	_ = json.NewDecoder(f).Decode(&all)
	before := earliest(all)
	change(all)
	now := earliest(all)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(append(text, '\n'), 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(text) + 1)); err != nil || now.Equal(before) {
		return err
	}
	if now.IsZero() { // nothing moves the time any more
		if err := d.root.Remove(deliveredFile); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	// A reader finds the former line or the new one.
	const next = deliveredFile + ".new"
	if err := d.root.WriteFile(next, append(now.AppendFormat(nil, time.RFC3339Nano), '\n'), private); err != nil {
		return err
	}
	return d.root.Rename(next, deliveredFile)
}

// earliest returns the earliest time of the deliveries; the zero time without deliveries. It removes those that are a day
// behind the latest: no server continues them, and the records that they lack were dropped.
func earliest(all map[string]time.Time) (at time.Time) {
	latest := time.Time{}
	for _, t := range all {
		if t.After(latest) {
			latest = t
		}
	}
	for name, t := range all {
		switch {
		case latest.Sub(t) > tabledef.StreamRetention:
			delete(all, name)
		case at.IsZero() || t.Before(at):
			at = t
		}
	}
	return at
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
