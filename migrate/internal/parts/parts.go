// Package parts stores the results of the parts of a load or verification in their shared
// folder.
//
// Each part is a process that handles some of the source's files. Parts share a folder,
// or their folders are merged afterwards. A running part has its checkpoint there; a
// complete part leaves its [Complete]. The process that finishes reads the results of all
// parts, and makes the checks that a single part cannot make.
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
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Kinds of work that can run in parts. File names begin with the kind.
const (
	Loading   = "load"
	Verifying = "verify"
)

// Names of the files of a part.
const (
	Checkpoint = "checkpoint" // progress of the part's load
	Done       = "done"       // [Complete] of the part, written at its end
	Rows       = "rows"       // hashes of the row keys that the part's load wrote, in order
)

// Folder stores the parts of one load or verification.
type Folder struct {
	Dir  string
	Verb string // Loading or Verifying
	// Identity is a hash of the whole work, and Tables is the number of its source
	// tables. A complete part that recorded other values is rejected.
	Identity string
	Tables   int
	// MaxDifferences is the number of failures that the report of a part lists.
	MaxDifferences int
}

// File returns the name of one of a part's files.
func (f Folder) File(p source.Part, kind string) string {
	return filepath.Join(f.Dir, fmt.Sprintf("%s-%d-of-%d.%s", f.Verb, p.Index, p.Of, kind))
}

// RowsFile returns the name of the file with the hashes of the row keys that a part of a load
// wrote to a table.
func (f Folder) RowsFile(p source.Part, table string) string {
	return f.File(p, Rows) + "." + table
}

// CreateRows creates a temporary file for the rows of a part, since another process may
// run the same part. PlaceRows moves the complete file into place.
func (f Folder) CreateRows(p source.Part, table string) (*os.File, error) {
	if err := os.MkdirAll(f.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("creating the folder of the parts: %w", err)
	}
	rows, err := os.CreateTemp(f.Dir, filepath.Base(f.RowsFile(p, table))+".*")
	if err != nil {
		return nil, fmt.Errorf("saving the rows of part %v: %w", p, err)
	}
	return rows, nil
}

// PlaceRows moves a file from CreateRows into place, or removes it if err is not nil.
func (f Folder) PlaceRows(rows *os.File, p source.Part, table string, err error) error {
	if err == nil {
		err = rows.Sync()
	}
	if err = errors.Join(err, rows.Close()); err == nil {
		err = os.Rename(rows.Name(), f.RowsFile(p, table))
	}
	if err != nil {
		_ = os.Remove(rows.Name()) // otherwise Remove does, with all others
	}
	return err
}

// Complete is the result of a part that is complete.
type Complete struct {
	Identity string         `json:"identity"` // identity of the whole work
	Report   *report.Report `json:"report"`
	Tables   []Table        `json:"tables"` // tables in the order of the source
}

// Table is the result of a part for one table of the source.
type Table struct {
	Joiner string `json:"joiner,omitempty"` // joiner that the keys of the part allow
	Row    []byte `json:"row,omitempty"`    // last row that the part's load wrote
	Rows   int64  `json:"rows,omitempty"`   // number of hashes that the part's load saved
	// Ranges holds the sums of each range of keys, by Bigtable table: those that the
	// part's items contribute, and the stored sums of the range that this part reads.
	Ranges Ranges `json:"ranges,omitempty"`
	// Live is set for a table that a follower writes. Rows then counts the records of
	// items that the part saved.
	Live *Live `json:"live,omitempty"`
}

// Live is the result of a part for a table that a follower writes.
type Live struct {
	Generation uint64 `json:"generation"` // of changed keys, begun before the first read
	Cuts       string `json:"cuts"`       // a hash of the ranges of row keys
	Segments   int    `json:"segments"`   // of the source, in all parts
	Consistent bool   `json:"consistent"`
	// Last is the time of the source's last answer.
	Last time.Time   `json:"last"`
	Seen report.Live `json:"seen"` // of entries of indexes
}

// Read reads the result of a part. It returns nil if the part is not complete.
func (f Folder) Read(p source.Part) (*Complete, error) {
	name := f.File(p, Done)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the result of part %v: %w", p, err)
	}
	done := Complete{Report: report.New(f.MaxDifferences)}
	if err := json.Unmarshal(text, &done); err != nil {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: name}, source.JSONCause(err), "the file is not the result of a part: remove it, and run part %v again", p)
	}
	if done.Identity != f.Identity || len(done.Tables) != f.Tables {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: name}, nil,
			"part %v belongs to another %s command: the source, the mapping or the target differs or has changed; name another folder, or remove the file and run the part again", p, f.Verb)
	}
	return &done, nil
}

// End records that a part is complete.
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
		return fmt.Errorf("recording that part %v is complete: %w", p, err)
	}
	return nil
}

// fileName matches the name of a file of a part. The process of a running part holds the
// lock; without such a process, the file has no meaning.
var fileName = sync.OnceValue(func() *regexp.Regexp { // large: it counts to 9
	return regexp.MustCompile(`^([a-z]+)-([0-9]{1,9})-of-([0-9]{1,9})\.(checkpoint|done|rows\..+|lock)$`)
})

// there returns the parts with a file in the folder, by the total number of parts.
func (f Folder) there() (map[int]map[int]bool, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for parts: %w", err)
	}
	there := map[int]map[int]bool{}
	for _, e := range entries {
		m := fileName().FindStringSubmatch(e.Name())
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

// pattern matches the files of n parts.
func (f Folder) pattern(n int) string { return fmt.Sprintf("%s-*-of-%d.*", f.Verb, n) }

// Admit returns an error if the folder holds parts of a load or verification that was
// split into another number of parts. Such parts could not be finished together.
func (f Folder) Admit(p source.Part) error {
	there, err := f.there()
	if err != nil {
		return err
	}
	for _, of := range slices.Sorted(maps.Keys(there)) {
		if of != p.Of {
			return source.Damaged(source.CheckpointInvalid, source.Position{File: f.Dir}, nil,
				"the folder holds parts of a %[3]s command with %[1]d parts, but this is part %[2]v: name another folder, or remove %[4]s there to start again with %[5]d parts", of, p, f.Verb, f.pattern(of), p.Of)
		}
	}
	return nil
}

// Count returns the total number of parts, according to the files in the folder, and the
// parts that have begun. It returns an error if the folder has no parts, or parts of
// different totals.
func (f Folder) Count() (of int, begun map[int]bool, err error) {
	at := source.Position{File: f.Dir}
	there, err := f.there()
	if err != nil {
		return 0, nil, err
	}
	numbers := slices.Sorted(maps.Keys(there))
	if len(numbers) > 1 {
		return 0, nil, source.Damaged(source.CheckpointInvalid, at, nil,
			"the folder holds parts of a %[3]s command with %[1]d parts and of one with %[2]d parts: remove either %[4]s or %[5]s", numbers[0], numbers[1], f.Verb, f.pattern(numbers[0]), f.pattern(numbers[1]))
	}
	if len(numbers) == 1 {
		of = numbers[0]
	}
	if of == 0 {
		return 0, nil, source.Damaged(source.CheckpointInvalid, at, nil, "the folder holds no parts of a %s command: expected files such as %s, which parts leave there until the end of the work", f.Verb, filepath.Base(f.File(source.Part{Index: 1, Of: 2}, Done)))
	}
	return of, there[of], nil
}

// ReadAll reads the results of all parts. It returns an error if any part is not
// complete.
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
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: f.Dir}, nil, "of %[2]d parts, these are not complete: %[1]s: run each of them (--part), then --finish again", text, of)
	}
	return all, nil
}

// Reports returns the reports of all given parts.
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
		m := fileName().FindStringSubmatch(e.Name())
		if m == nil || m[1] != f.Verb || m[3] != strconv.Itoa(of) && m[4] != "lock" {
			continue
		}
		// A process that ends removes its lock itself.
		if gone := os.Remove(filepath.Join(f.Dir, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return fmt.Errorf("removing the files of complete parts: %w", err)
	}
	return nil
}

// WriteWhole replaces a file atomically: a reader sees either the old or the new content.
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
		_ = os.Remove(f.Name()) // a temporary file
	}
	return err
}
