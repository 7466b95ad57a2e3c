package migrationstate

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Table is the id of the table with the states of migrations, in the target's instance.
const Table = "_migration_state"

// The families of the table. Each row has one value, in Column of the family of its kind.
const (
	FamilyState      = "s"
	FamilyCheckpoint = "c"
	FamilyLetter     = "d"
	FamilyDirty      = "k"
	FamilyHistory    = "h"
)

// Column is the qualifier of every value.
const Column = "v"

// WriterColumn is the qualifier of the cell, next to a checkpoint, with the only [State.Term]
// whose owner may write the checkpoint. [TermValue] encodes it.
const WriterColumn = "writer"

// TermValue returns the value of a term: values compare as terms do.
func TermValue(term uint64) []byte { return binary.BigEndian.AppendUint64(nil, term) }

// Families returns the families of the table. They keep the newest cell.
func Families() []cells.Family {
	var all []cells.Family
	for _, name := range []string{FamilyState, FamilyCheckpoint, FamilyLetter, FamilyDirty, FamilyHistory} {
		all = append(all, cells.Family{Name: name, GC: cells.GC{Versions: 1}})
	}
	return all
}

// separator ends the id of a table in a row key: ids consist of [-_.a-zA-Z0-9].
const separator = "#"

// TablePrefix returns the prefix of all rows of a Bigtable table.
func TablePrefix(table string) []byte { return []byte(table + separator) }

func key(table string, parts ...string) []byte {
	return []byte(table + separator + strings.Join(parts, separator))
}

const stateKey = "state"

// StateRow returns the key of the row with the [State] of a table.
func StateRow(table string) []byte { return key(table, stateKey) }

// TableOf returns the table of a [StateRow]; ok is false for other rows.
func TableOf(row []byte) (table string, ok bool) {
	name, ok := bytes.CutSuffix(row, []byte(separator+stateKey))
	return string(name), ok && !bytes.Contains(name, []byte(separator))
}

// CheckpointRow returns the key of the row with the [Checkpoint] of a kind of source, such as
// "stream".
func CheckpointRow(table, source string) []byte { return key(table, FamilyCheckpoint, source) }

// LetterPrefix returns the prefix of the rows of a table's dead letters.
func LetterPrefix(table string) []byte { return key(table, FamilyLetter, "") }

// LetterRow returns the key of the row with the [Letter] of an item.
func LetterRow(table string, id attr.ItemID) []byte {
	return append(LetterPrefix(table), hex.EncodeToString(id[:])...)
}

// Buckets is the number of buckets of a generation: the id of an item assigns its key to one.
const Buckets = 16

// DirtyPrefix returns the prefix of the rows of the keys that changed in a generation; with a
// bucket from 0 to Buckets-1, of the keys in that bucket.
func DirtyPrefix(table string, generation uint64, bucket ...int) []byte {
	row := key(table, FamilyDirty, fmt.Sprintf("%016x", generation), "")
	for _, b := range bucket {
		row = fmt.Appendf(row, "%x%s", b, separator)
	}
	return row
}

// DirtyRow returns the key of the row with a [Dirty] key.
func DirtyRow(table string, generation uint64, id attr.ItemID) []byte {
	return append(DirtyPrefix(table, generation, int(id[0])*Buckets/256), hex.EncodeToString(id[:])...)
}

// SplitPrefix returns the prefix of the rows with the [Split] of a table.
func SplitPrefix(table string) []byte { return key(table, "v", "") }

// SplitRow returns the key of the row with the [Split] for a number of parts.
func SplitRow(table string, parts int) []byte { return fmt.Appendf(SplitPrefix(table), "%d", parts) }

// HistoryPrefix returns the prefix of the rows of a table's history, newest first.
func HistoryPrefix(table string) []byte { return key(table, FamilyHistory, "") }

// HistoryRow returns the key of the row with the [Event] of a time.
func HistoryRow(table string, at time.Time) []byte {
	return fmt.Appendf(HistoryPrefix(table), "%019d", int64(math.MaxInt64)-at.UnixMicro())
}
