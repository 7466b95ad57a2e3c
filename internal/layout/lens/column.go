package lens

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/cells"
)

// Column holds consecutive versions of one column, newest first.
type Column struct {
	Family    string
	Qualifier []byte
	Versions  []cells.Cell
}

// Columns calls f for each column of a row whose cells are in order.
func Columns(row []cells.Cell, f func(Column) error) error {
	for i := 0; i < len(row); {
		j := i + 1
		for j < len(row) && row[j].Family == row[i].Family && bytes.Equal(row[j].Qualifier, row[i].Qualifier) {
			j++
		}
		if err := f(Column{row[i].Family, row[i].Qualifier, row[i:j]}); err != nil {
			return err
		}
		i = j
	}
	return nil
}

// Sidecar returns the newest values of the sidecar cells of a row, by qualifier.
func Sidecar(row cells.Row) map[string][]byte {
	var side map[string][]byte
	_ = Columns(row.Cells, func(c Column) error {
		if c.Family == FamilyTypes {
			if side == nil {
				side = map[string][]byte{}
			}
			side[string(c.Qualifier)] = c.Versions[0].Value
		}
		return nil
	})
	return side
}
