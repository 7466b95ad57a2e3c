//go:build !unix

package kinesis

import "os"

// lock does nothing: without locks of files a folder is one process's alone.
func lock(*os.File) error { return nil }
