//go:build packed

package docs

import "github.com/tabletop-emu/tabletop/internal/packed"

var files = packed.FS(packed.Archive, "docs")
