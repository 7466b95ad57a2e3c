//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file for as long as it is open, unless somebody has it locked.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS):
			return true, nil // of a file system without locks nobody can know
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}
