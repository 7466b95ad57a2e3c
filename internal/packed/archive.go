//go:build packed

package packed

import _ "embed" // for the archive

// Archive is the archive of pack.
//
//go:embed files.zip
var Archive string
