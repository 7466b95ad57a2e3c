package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tabletop-emu/tabletop/internal/filelock"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// lockPart prevents two processes from running the same part, on this machine or on machines
// whose file systems share locks. It locks a file in the folder of the parts; the lock ends
// with the process. release ends it.
func lockPart(folder, verb string, p source.Part) (release func(), err error) {
	_, err = os.Stat(folder)
	made := errors.Is(err, os.ErrNotExist)
	name := filepath.Join(folder, fmt.Sprintf("%s-%d-of-%d.lock", verb, p.Index, p.Of))
	var f *os.File
	for range 10 { // an ending process may delete the file or the folder meanwhile
		if f, err = lockFile(name); f != nil || !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	switch {
	case errors.Is(err, errHeld):
		return nil, badInput("part %v is running in another process, which holds %s: wait until it ends, or stop it", p, name)
	case err != nil:
		return nil, badInput("--checkpoint: locking part %v: %w", p, err)
	}
	return func() {
		_ = os.Remove(name) // while locked, so that the next owner's file is not deleted
		_ = f.Close()
		if made {
			_ = os.Remove(folder) // only if it is empty
		}
	}, nil
}

// errHeld means that another process has locked the file.
var errHeld = errors.New("the file is locked")

// lockFile creates a file, with its folder, and locks it. The error is errHeld, or
// os.ErrNotExist if the file was deleted meanwhile.
func lockFile(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	held, err := filelock.TryLock(f)
	if err == nil && !held {
		err = errHeld
	}
	var there, mine os.FileInfo
	if err == nil {
		mine, err = f.Stat()
	}
	if err == nil {
		there, err = os.Stat(name)
	}
	if err == nil && !os.SameFile(there, mine) {
		err = os.ErrNotExist
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}
