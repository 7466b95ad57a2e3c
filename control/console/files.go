//go:build !packed

package console

import "embed"

//go:embed static
var embedded embed.FS
