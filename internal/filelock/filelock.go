// Package filelock locks files between processes. A lock lasts as long as its file is open,
// so it ends with its process. If the system or the file system has no file locks, every
// lock succeeds.
package filelock

import "os"

// Lock locks f, and waits while another owner has it locked, in this process or another one.
func Lock(f *os.File) error {
	_, err := lock(f, true)
	return err
}

// TryLock locks f, or reports that another owner has it locked.
func TryLock(f *os.File) (locked bool, err error) { return lock(f, false) }
