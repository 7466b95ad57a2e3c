//go:build packed

package console

import "github.com/tabletop-emu/tabletop/internal/packed"

var embedded = packed.FS(packed.Archive, "control/console")
