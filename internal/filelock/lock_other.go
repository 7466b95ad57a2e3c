//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package filelock

import "os"

func lock(*os.File, bool) (bool, error) { return true, nil }
