package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tabletop-emu/tabletop/migrate/source"
)

// lockPart keeps a part from being run by two processes of this machine, or of those whose
// file systems share locks: it holds a file in the folder of the parts, which no process
// holds that has ended. release gives it up.
func lockPart(folder, verb string, p source.Part) (release func(), err error) {
	_, err = os.Stat(folder)
	made := errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, badInput("--checkpoint: %w", err)
	}
	name := filepath.Join(folder, fmt.Sprintf("%s-%d-of-%d.lock", verb, p.Index, p.Of))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, badInput("--checkpoint: %w", err)
	}
	held, err := tryLock(f)
	if err == nil && held {
		var there, mine os.FileInfo
		if mine, err = f.Stat(); err == nil {
			there, err = os.Stat(name)
			held = err == nil && os.SameFile(there, mine)
		}
		if errors.Is(err, os.ErrNotExist) { // whoever had it has just ended
			err = nil
		}
	}
	if err != nil || !held {
		_ = f.Close() // nothing was written
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", name, err)
		}
		return nil, badInput("part %v is under way in another process, which holds %s: let it come to its end, or end it", p, name)
	}
	return func() {
		_ = os.Remove(name) // while it is held, so that nobody loses it who has it next
		_ = f.Close()
		if made {
			_ = os.Remove(folder) // unless something is in it
		}
	}, nil
}
