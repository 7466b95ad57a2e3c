package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tabletop-emu/tabletop/internal/filelock"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// lockPart keeps a part from being run by two processes of this machine, or of those whose
// file systems share locks: it holds a file in the folder of the parts, which no process
// holds that has ended. release gives it up.
func lockPart(folder, verb string, p source.Part) (release func(), err error) {
	_, err = os.Stat(folder)
	made := errors.Is(err, os.ErrNotExist)
	name := filepath.Join(folder, fmt.Sprintf("%s-%d-of-%d.lock", verb, p.Index, p.Of))
	var f *os.File
	for range 10 { // whoever ends meanwhile takes the file away, or the folder
		if f, err = lockFile(name); f != nil || !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	switch {
	case errors.Is(err, errHeld):
		return nil, badInput("part %v is under way in another process, which holds %s: let it come to its end, or end it", p, name)
	case err != nil:
		return nil, badInput("--checkpoint: locking part %v: %w", p, err)
	}
	return func() {
		_ = os.Remove(name) // while it is held, so that nobody loses it who has it next
		_ = f.Close()
		if made {
			_ = os.Remove(folder) // unless something is in it
		}
	}, nil
}

// errHeld is the error of a file that another process has locked.
var errHeld = errors.New("the file is locked")

// lockFile makes a file, with its folder, and locks it. The error is errHeld, or
// os.ErrNotExist where somebody took it away meanwhile.
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
