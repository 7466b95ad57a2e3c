// Package parts keeps what the parts of a load or of a verification leave in the folder
// that they share.
//
// Parts run in processes of their own, each over its files of the source. They share a
// folder, or their folders are merged afterwards. While a part runs, its checkpoint is
// there; a complete part leaves its [Complete]. The process that finishes reads those of
// all parts, and does what none of them can know alone.
package parts

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// What is done in parts: the names of their files begin with it.
const (
	Loading   = "load"
	Verifying = "verify"
)

// The files of a part.
const (
	Checkpoint = "checkpoint" // how far its load has come
	Done       = "done"       // its [Complete], once it is complete
	Rows       = "rows"       // of a load: the hashes of its row keys, in order
)

// Folder is the folder of the parts of one load or verification.
type Folder struct {
	Dir  string
	Verb string // Loading or Verifying
	// Identity is the hash of the whole that they are parts of, and Tables its number of
	// source tables. A complete part with others is refused.
	Identity string
	Tables   int
	// MaxDifferences is how many failures the report of a part lists.
	MaxDifferences int
}

// File returns the name of a file of a part.
func (f Folder) File(p source.Part, kind string) string {
	return filepath.Join(f.Dir, fmt.Sprintf("%s-%d-of-%d.%s", f.Verb, p.Index, p.Of, kind))
}

// RowsFile returns the name of the file of the row keys that a load's part wrote to a
// table.
func (f Folder) RowsFile(p source.Part, table string) string {
	return f.File(p, Rows) + "." + table
}

// CreateRows opens a file for the rows of a part. PlaceRows puts it in its place once it is
// whole: the same part may run in another process, or be complete by then.
func (f Folder) CreateRows(p source.Part, table string) (*os.File, error) {
	if err := os.MkdirAll(f.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("making the folder of the parts: %w", err)
	}
	rows, err := os.CreateTemp(f.Dir, filepath.Base(f.RowsFile(p, table))+".*")
	if err != nil {
		return nil, fmt.Errorf("keeping the rows of part %v: %w", p, err)
	}
	return rows, nil
}

// PlaceRows puts a file of CreateRows in its place; if err says that it is not whole, it
// removes the file.
func (f Folder) PlaceRows(rows *os.File, p source.Part, table string, err error) error {
	if err == nil {
		err = rows.Sync()
	}
	if err = errors.Join(err, rows.Close()); err == nil {
		err = os.Rename(rows.Name(), f.RowsFile(p, table))
	}
	if err != nil {
		_ = os.Remove(rows.Name()) // else Remove would, with all others
	}
	return err
}

// Complete is the result of a complete part.
type Complete struct {
	Identity string         `json:"identity"` // of what all parts are parts of
	Report   *report.Report `json:"report"`
	Tables   []Table        `json:"tables"` // in the order of the source
}

// Table is the result of a part for one table of the source.
type Table struct {
	Joiner string `json:"joiner,omitempty"` // that the keys of the part could have
	Row    []byte `json:"row,omitempty"`    // that the load of the part wrote last
	Rows   int64  `json:"rows,omitempty"`   // whose hashes the load of the part kept
	// Ranges are, by Bigtable table, what its items ask for in each range of its keys,
	// and what is there of the range that is the part's to read.
	Ranges Ranges `json:"ranges,omitempty"`
}

// Read reads the result of a part; nil if the part is not complete.
func (f Folder) Read(p source.Part) (*Complete, error) {
	name := f.File(p, Done)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what part %v did: %w", p, err)
	}
	done := Complete{Report: report.New(f.MaxDifferences)}
	if err := json.Unmarshal(text, &done); err != nil {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: name}, source.JSONCause(err), "the file does not tell what a part did: remove it, and deal with part %v again", p)
	}
	if done.Identity != f.Identity || len(done.Tables) != f.Tables {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: name}, nil,
			"part %v is of another %s: the source, the mapping or the target is another, or has changed since; name another folder, or remove the file to deal with the part again", p, f.Verb)
	}
	return &done, nil
}

// End notes that a part is complete.
func (f Folder) End(p source.Part, done Complete) error {
	done.Identity = f.Identity
	text, err := json.Marshal(done)
	if err == nil {
		err = os.MkdirAll(f.Dir, 0o777)
	}
	if err == nil {
		err = WriteWhole(f.File(p, Done), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("noting that part %v is complete: %w", p, err)
	}
	return nil
}

// fileName is the name of a file of a part. A lock is held by the process of a part that is
// under way, and says nothing where there is no such process.
var fileName = regexp.MustCompile(`^([a-z]+)-([0-9]{1,9})-of-([0-9]{1,9})\.(checkpoint|done|rows\..+|lock)$`)

// there returns the parts that have left a file in the folder, by the number of all
// parts.
func (f Folder) there() (map[int]map[int]bool, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for parts: %w", err)
	}
	there := map[int]map[int]bool{}
	for _, e := range entries {
		m := fileName.FindStringSubmatch(e.Name())
		if m == nil || m[1] != f.Verb || m[4] == "lock" {
			continue
		}
		i, _ := strconv.Atoi(m[2]) // nine digits are a number
		of, _ := strconv.Atoi(m[3])
		if there[of] == nil {
			there[of] = map[int]bool{}
		}
		there[of][i] = true
	}
	return there, nil
}

// pattern is the pattern of the files of n parts.
func (f Folder) pattern(n int) string { return fmt.Sprintf("%s-*-of-%d.*", f.Verb, n) }

// Admit refuses a part if the folder has parts of another number: together they would
// never be finished.
func (f Folder) Admit(p source.Part) error {
	there, err := f.there()
	if err != nil {
		return err
	}
	for _, of := range slices.Sorted(maps.Keys(there)) {
		if of != p.Of {
			return source.Damaged(source.CheckpointInvalid, source.Position{File: f.Dir}, nil,
				"the folder has parts of %d, and this one is part %v: expected those of one %s; name another folder, or remove %s there to begin in parts of %d", of, p, f.Verb, f.pattern(of), p.Of)
		}
	}
	return nil
}

// Count returns how many parts there are to be, by the files in the folder, and those that
// have begun. It refuses a folder with none, and one with parts of several numbers.
func (f Folder) Count() (of int, begun map[int]bool, err error) {
	at := source.Position{File: f.Dir}
	there, err := f.there()
	if err != nil {
		return 0, nil, err
	}
	numbers := slices.Sorted(maps.Keys(there))
	if len(numbers) > 1 {
		return 0, nil, source.Damaged(source.CheckpointInvalid, at, nil,
			"the folder has parts of %d and parts of %d: expected those of one %s; remove %s or %s, whichever are not to count", numbers[0], numbers[1], f.Verb, f.pattern(numbers[0]), f.pattern(numbers[1]))
	}
	if len(numbers) == 1 {
		of = numbers[0]
	}
	if of == 0 {
		return 0, nil, source.Damaged(source.CheckpointInvalid, at, nil, "the folder has no part of a %s: expected %s and so on, as parts leave them until they are finished", f.Verb, filepath.Base(f.File(source.Part{Index: 1, Of: 2}, Done)))
	}
	return of, there[of], nil
}

// ReadAll reads the results of all parts, and refuses if one is not complete.
func (f Folder) ReadAll(of int, begun map[int]bool) ([]*Complete, error) {
	var all []*Complete
	var lacking []string
	for i := 1; i <= of; i++ {
		p := source.Part{Index: i, Of: of}
		done, err := f.Read(p)
		if err != nil {
			return nil, err
		}
		switch {
		case done != nil:
			all = append(all, done)
		case begun[i]:
			lacking = append(lacking, fmt.Sprintf("%v (begun)", p))
		default:
			lacking = append(lacking, p.String())
		}
	}
	if len(lacking) > 0 {
		const most = 20
		text := strings.Join(lacking[:min(len(lacking), most)], ", ")
		if len(lacking) > most {
			text += fmt.Sprintf(" and %d more", len(lacking)-most)
		}
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: f.Dir}, nil, "not all parts are complete: %s lacking of %d", text, of)
	}
	return all, nil
}

// Reports returns the reports of parts.
func Reports(all []*Complete) (reports []*report.Report) {
	for _, p := range all {
		reports = append(reports, p.Report)
	}
	return reports
}

// Remove removes the files of all parts, including those of processes that were killed.
func (f Folder) Remove(of int) error {
	entries, err := os.ReadDir(f.Dir)
	for _, e := range entries {
		m := fileName.FindStringSubmatch(e.Name())
		if m == nil || m[1] != f.Verb || m[3] != strconv.Itoa(of) && m[4] != "lock" {
			continue
		}
		// A process that is at its end removes its lock itself.
		if gone := os.Remove(filepath.Join(f.Dir, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return fmt.Errorf("removing what complete parts left: %w", err)
	}
	return nil
}

// WriteWhole replaces a file at once: a reader sees the old content or the new.
func WriteWhole(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tabletop-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it was never anything
	}
	return err
}
