//go:build unix

package kinesis

import (
	"errors"
	"os"
	"syscall"
)

// lock waits until no other process, nor anyone else in this one, holds a file, and holds
// it until it is closed.
func lock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
