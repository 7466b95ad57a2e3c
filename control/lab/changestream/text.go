package changestream

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

var kindNames = [...]string{
	SetCell: "SetCell", DeleteCells: "DeleteCells", DeleteFamily: "DeleteFamily", AddToCell: "AddToCell", MergeToCell: "MergeToCell",
}

// String returns the name of the kind, such as SetCell.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// String returns the record on one line, without its times, cluster and token:
//
//	customer7#0001: o:total @1000 = "42"; delete o:state; delete p
//	customer7#0001 gc: delete o:total [1000, 2000)
func (r Record) String() string {
	texts := make([]string, len(r.Entries))
	for i := range r.Entries {
		texts[i] = r.Entries[i].String()
	}
	origin := ""
	if r.GC {
		origin = " gc"
	}
	return r.Row + origin + ": " + strings.Join(texts, "; ")
}

// String returns the entry in the format of btkit.Env.CheckRow; see [Record.String].
func (e Entry) String() string {
	cell := cells.Cell{Family: e.Family, Qualifier: []byte(e.Column), Timestamp: e.Timestamp, Value: e.Value}
	column := rowtext.ColumnText(e.Family, cell.Qualifier)
	switch e.Kind {
	case SetCell:
		return rowtext.CellText(cell)
	case DeleteCells:
		switch {
		case e.Start == 0 && e.End == 0:
			return "delete " + column
		case e.End == 0:
			return fmt.Sprintf("delete %s [%d, )", column, e.Start)
		}
		return fmt.Sprintf("delete %s [%d, %d)", column, e.Start, e.End)
	case DeleteFamily:
		return "delete " + e.Family
	case AddToCell:
		return fmt.Sprintf("%s @%d + %d", column, e.Timestamp, e.Input)
	case MergeToCell:
		return strings.Replace(rowtext.CellText(cell), " = ", " + ", 1)
	}
	return fmt.Sprintf("%v of %s", e.Kind, column)
}
