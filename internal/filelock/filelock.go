// Package filelock provides file locks between processes. A lock lasts as long as its file is open,
// so it ends with its process. If the operating system or the file system does not support file
// locks, every lock succeeds. Libraries such as gofrs/flock open the file themselves, by its path: that
// would leave the folder of an os.Root, and on Windows prevent others from reading the file.
package filelock

import "os"

// Lock locks f. It waits while another owner, in this or another process, has f locked.
func Lock(f *os.File) error {
	_, err := lock(f, true)
	return err
}

// TryLock locks f, or returns false if another owner has it locked.
func TryLock(f *os.File) (locked bool, err error) { return lock(f, false) }
