//go:build !packed

package docs

import "embed"

//go:embed *.md arrive/*.md notes/*.md tasks/*.md
var files embed.FS
