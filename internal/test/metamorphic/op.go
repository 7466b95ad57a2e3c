// Package metamorphic runs random operations from a seed on a naive model and on variants of the
// engine, and compares all results.
package metamorphic

import (
	"fmt"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/model"
)

// kind is the kind of an op.
type kind uint8

const (
	createTable kind = iota + 1
	deleteTable
	modifyFamilies
	dropRows
	mutate
	readModifyWrite
	update // mutates, and puts a resource, if the row has a cell in the column Family:Qualifier
	scan
	runGC
	advance
	compact
	softDeleteTable
	undeleteTable
	purgeTables
	putResource
	deleteResource
	updateCatalog // steps, all or none
	readCatalog
	takeSnapshot
	restoreSnapshot
	createBackup
	copyBackup
	restoreBackup
	deleteBackup
	setJournal
	readJournal
	readSince   // from a time ago
	readEnd     // remembers the position
	foldJournal // collects garbage, and compares the result of the records with the rows
	createView
	updateView
	deleteView
	getView
	scanView
	mutateView
	checkView // applies one of two lists of mutations, depending on whether the view has a cell of the row
	readModifyWriteView
	reopen   // snapshots are deleted
	crash    // reopen after a crash
	kindsEnd // one more than the last kind
)

// scanMode selects the calls of a scan between cells.
type scanMode uint8

const (
	allCells    scanMode = iota
	skipColumns          // SkipColumn after each cell
	skipFamilies
	seekColumn   // SeekColumn before the first cell
	seekInside   // SeekColumn after the first cell
	rewindOnce   // up to two cells, Rewind, all cells
	firstCells   // one cell, then the next row
	scanModesEnd // number of modes
)

// op is one operation. It is data, so any store can run it and it can be printed.
type op struct {
	kind      kind
	table     string
	row       string
	steps     []op // updateCatalog
	ignore    bool // updateCatalog: continues after a failed step
	fail      bool // updateCatalog: reverts all steps at the end
	def       engine.Table
	changes   []engine.FamilyChange
	muts      []engine.Mutation
	rules     []engine.RuleReadModifyWrite
	spans     []engine.Span // scan; dropRows has one
	reverse   bool
	mode      scanMode
	family    string
	qualifier string
	by        time.Duration
	backup    string
	from      string // copyBackup
	reason    engine.JournalReason
	after, to int    // indexes of remembered positions; after 0 is the beginning, and to 0 remembers nothing
	view      string // the id of a view of the table
	subset    model.View
	otherwise []engine.Mutation // checkView
	limit     int               // readJournal: limit without counting records of garbage collections; 0 reads all
}

// String returns the operation as readable text.
func (o op) String() string {
	var b strings.Builder
	list := func(n int, item func(i int)) {
		for i := range n {
			b.WriteString("\n\t")
			item(i)
		}
	}
	spans := func() {
		list(len(o.spans), func(i int) { fmt.Fprintf(&b, "[%q, %q)", o.spans[i].Start, o.spans[i].End) })
	}
	muts := func() {
		list(len(o.muts), func(i int) { b.WriteString(mutationText(o.muts[i])) })
	}
	rules := func() {
		list(len(o.rules), func(i int) {
			r := o.rules[i]
			if r.Append != nil {
				fmt.Fprintf(&b, "append %s:%q %q", r.Family, r.Qualifier, r.Append)
			} else {
				fmt.Fprintf(&b, "increment %s:%q %d", r.Family, r.Qualifier, r.Increment)
			}
		})
	}
	switch o.kind {
	case createTable:
		fmt.Fprintf(&b, "create-table %s granularity=%d journal=%v", o.table, o.def.Granularity, o.def.Journal)
		list(len(o.def.Families), func(i int) { b.WriteString(familyText("family", &o.def.Families[i])) })
	case deleteTable:
		fmt.Fprintf(&b, "delete-table %s", o.table)
	case modifyFamilies:
		fmt.Fprintf(&b, "modify-families %s", o.table)
		list(len(o.changes), func(i int) {
			switch c := o.changes[i]; {
			case c.Create != nil:
				b.WriteString(familyText("create", c.Create))
			case c.Update != nil:
				b.WriteString(familyText("update", c.Update))
			default:
				fmt.Fprintf(&b, "drop %s", c.Drop)
			}
		})
	case dropRows:
		fmt.Fprintf(&b, "drop-rows %s", o.table)
		spans()
	case mutate:
		fmt.Fprintf(&b, "mutate %s %q", o.table, o.row)
		muts()
	case update:
		fmt.Fprintf(&b, "update %s %q if %s:%q", o.table, o.row, o.family, o.qualifier)
		muts()
	case readModifyWrite:
		fmt.Fprintf(&b, "read-modify-write %s %q", o.table, o.row)
		rules()
	case scan:
		fmt.Fprintf(&b, "scan %s reverse=%v mode=%d column=%s:%q", o.table, o.reverse, o.mode, o.family, o.qualifier)
		spans()
	case runGC:
		b.WriteString("gc")
	case advance:
		fmt.Fprintf(&b, "advance %v", o.by)
	case compact:
		b.WriteString("compact")
	case softDeleteTable:
		fmt.Fprintf(&b, "soft-delete-table %s", o.table)
	case undeleteTable:
		fmt.Fprintf(&b, "undelete-table %s", o.table)
	case purgeTables:
		fmt.Fprintf(&b, "purge-tables %s", o.table)
	case putResource:
		fmt.Fprintf(&b, "put-resource %q %q", o.row, o.qualifier)
	case deleteResource:
		fmt.Fprintf(&b, "delete-resource %q", o.row)
	case updateCatalog:
		fmt.Fprintf(&b, "update-catalog ignore=%v fail=%v", o.ignore, o.fail)
		list(len(o.steps), func(i int) { b.WriteString(strings.ReplaceAll(o.steps[i].String(), "\n", "\n\t")) })
	case readCatalog:
		b.WriteString("read-catalog")
	case takeSnapshot:
		b.WriteString("snapshot")
	case restoreSnapshot:
		b.WriteString("restore")
	case createBackup:
		fmt.Fprintf(&b, "create-backup %s of %s", o.backup, o.table)
	case copyBackup:
		fmt.Fprintf(&b, "copy-backup %s of %s", o.backup, o.from)
	case restoreBackup:
		fmt.Fprintf(&b, "restore-backup %s as %s", o.backup, o.table)
	case deleteBackup:
		fmt.Fprintf(&b, "delete-backup %s", o.backup)
	case setJournal:
		fmt.Fprintf(&b, "set-journal %s reason=%d keep=%v", o.table, o.reason, o.by)
	case readJournal:
		fmt.Fprintf(&b, "read-journal %s reason=%d after=%d limit=%d to=%d", o.table, o.reason, o.after, o.limit, o.to)
		spans()
	case readSince:
		fmt.Fprintf(&b, "read-since %s reason=%d ago=%v", o.table, o.reason, o.by)
	case readEnd:
		fmt.Fprintf(&b, "read-end %s reason=%d to=%d", o.table, o.reason, o.to)
	case foldJournal:
		fmt.Fprintf(&b, "fold-journal %s", o.table)
	case createView:
		fmt.Fprintf(&b, "create-view %s of %s: %s", o.view, o.table, viewText(o.subset))
	case updateView:
		fmt.Fprintf(&b, "update-view %s of %s: %s", o.view, o.table, viewText(o.subset))
	case deleteView:
		fmt.Fprintf(&b, "delete-view %s of %s", o.view, o.table)
	case getView:
		fmt.Fprintf(&b, "get-view %s of %s", o.view, o.table)
	case scanView:
		fmt.Fprintf(&b, "scan-view %s of %s reverse=%v", o.view, o.table, o.reverse)
		spans()
	case mutateView:
		fmt.Fprintf(&b, "mutate-view %s of %s %q", o.view, o.table, o.row)
		muts()
	case checkView:
		fmt.Fprintf(&b, "check-view %s of %s %q", o.view, o.table, o.row)
		muts()
		b.WriteString("\n    else")
		list(len(o.otherwise), func(i int) { b.WriteString(mutationText(o.otherwise[i])) })
	case readModifyWriteView:
		fmt.Fprintf(&b, "read-modify-write-view %s of %s %q", o.view, o.table, o.row)
		rules()
	case reopen:
		b.WriteString("reopen")
	case crash:
		b.WriteString("crash")
	case kindsEnd:
	}
	return b.String()
}

func familyText(what string, f *engine.Family) string {
	return fmt.Sprintf("%s %s aggregate=%d gc=%v", what, f.Name, f.Aggregate, f.GC)
}

func mutationText(m engine.Mutation) string {
	switch m.Kind {
	case engine.SetCell:
		return fmt.Sprintf("set %s:%q @%d %q", m.Family, m.Qualifier, m.Timestamp, m.Value)
	case engine.DeleteFromColumn:
		return fmt.Sprintf("delete-column %s:%q [%d, %d)", m.Family, m.Qualifier, m.Start, m.End)
	case engine.DeleteFromFamily:
		return "delete-family " + m.Family
	case engine.DeleteFromRow:
		return "delete-row"
	case engine.AddToCell:
		return fmt.Sprintf("add %s:%q @%d %d %q (nil %v)", m.Family, m.Qualifier, m.Timestamp, m.Input, m.Value, m.Value == nil)
	case engine.MergeToCell:
		return fmt.Sprintf("merge %s:%q @%d %q (nil %v)", m.Family, m.Qualifier, m.Timestamp, m.Value, m.Value == nil)
	}
	return fmt.Sprintf("mutation of kind %d", m.Kind)
}
