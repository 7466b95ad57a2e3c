package request

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// Names that LayersOf accepts besides regions.
const (
	Current = "current" // layer that most regions have, by operation
	Classic = "classic" // older layer for all operations
)

// othersColumn is the column of all operations without a column of their own.
const othersColumn = "others"

//go:embed regions.tsv
var regionsTable string

// Layers selects the layer of the service that checks each operation in one region.
type Layers struct {
	newer  map[string]bool // by operation
	others bool
}

// Newer reports whether the newer layer checks an operation.
func (l Layers) Newer(operation string) bool {
	if newer, ok := l.newer[operation]; ok {
		return newer
	}
	return l.others
}

// regions are the rows of the table, in its order.
var regions = sync.OnceValue(func() (rows []regionRow) {
	var columns []string
	for line := range strings.Lines(regionsTable) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case columns == nil:
			columns = cells[1:]
		default:
			rows = append(rows, newRegionRow(cells[0], columns, cells[1:]))
		}
	}
	return rows
})

type regionRow struct {
	name string
	Layers
}

func newRegionRow(name string, columns, cells []string) regionRow {
	row := regionRow{name, Layers{newer: map[string]bool{}}}
	for i, column := range columns {
		newer := strings.TrimSuffix(cells[i], "?") == "newer"
		if column == othersColumn {
			row.others = newer
			continue
		}
		for operation := range strings.FieldsSeq(column) {
			row.newer[operation] = newer
		}
	}
	return row
}

// LayersOf returns the layers of a region, of Current or of Classic. The name "" means
// Current. If the name is unknown, the error lists the known names.
func LayersOf(region string) (Layers, error) {
	if region == "" {
		region = Current
	}
	var known []string
	for _, row := range regions() {
		if row.name == region {
			return row.Layers, nil
		}
		known = append(known, row.name)
	}
	return Layers{}, fmt.Errorf("%q is unknown, want %s or %s", region,
		strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
}
