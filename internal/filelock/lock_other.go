//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package filelock

import "os"

func lock(*os.File, bool) (bool, error) { return true, nil }
