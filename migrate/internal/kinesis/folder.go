package kinesis

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Options are the options of Open. Dir, Table, Now and Sleep are required.
type Options struct {
	Dir   string
	Table string // the name of the DynamoDB table; records of others are skipped

	// Checkpoint is the state of an earlier Folder. Default: the files are read from their beginnings.
	Checkpoint *Checkpoint
	// Since is the time of the state to which the records are applied: the folder must begin before
	// it. A checkpoint replaces it.
	Since time.Time
	// Allowance is how long after a newer record an older one may arrive. Default: 10 s.
	Allowance time.Duration
	// AcceptTies admits records whose times have whole milliseconds.
	AcceptTies bool
	// Fetch reads an item of the source consistently; it returns nil if the item does not
	// exist. Default: there is no source, and changes whose order is unknown are
	// [Record.Undecided].
	Fetch func(ctx context.Context, key attr.Item) (attr.Item, error)

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
}

// DefaultAllowance is the default of Options.Allowance.
const DefaultAllowance = 10 * time.Second

// pollEvery is the pause between two looks for new records.
const pollEvery = 500 * time.Millisecond

// Record is a change of an item.
type Record struct {
	Keys attr.Item   // the key attributes
	New  attr.Item   // the item after the change; nil if it was deleted
	Was  []attr.Item // known former states
	// Complete means that Was has the state before the change.
	Complete bool
	Time     time.Time
	Tie      uint64 // orders the changes of an item with the same Time
	// Undecided is why the change cannot be ordered, so that it must not be applied.
	Undecided error
	At        source.Position
}

// Checkpoint is the progress of a Folder.
type Checkpoint struct {
	Watermark time.Time
	Begun     bool  // a record of the table was found
	Late      int64 // see [Status]
	Folded    Folded
	Files     []File // by name
}

// File is the progress in a file.
type File struct {
	Name   string
	Offset int64 // where to continue
	Line   int   // the number of lines before Offset
	// Applied is the offset up to which records were applied. Those from Offset on are read
	// again, since they show the order of later ones.
	Applied int64
}

// Folded are the files that were read to their ends, up to a name. They must not change.
type Folded struct {
	Through string
	Files   int
	Bytes   int64
}

// Status is the state of a running Folder.
type Status struct {
	Watermark time.Time // the zero time if unknown
	Delivered bool      // it follows from [DeliveredFile], not from a record
	Late      int64     // records that came after the watermark had passed them
}

// DeliveredFile is a file in the folder with a time as RFC 3339 has it, and a newline. The program that appends the
// records may write it: it states that the files have all records that the stream had at that time. So the
// watermark of a quiet table moves without a record.
const DeliveredFile = "_delivered"

// file is a file that may still grow.
type file struct {
	File         // its Offset is where to read
	from   int64 // Applied at the start: later records are new
	size   int64 // when it was last seen
	tail   int64 // the end of a line that was applied although it lacks its newline
	newest int64 // of its records, in microseconds
}

// fold keeps the last maxFiles files. A checkpoint lists these, and all from the first file that
// fold cannot drop.
const maxFiles = 64

// Folder reads the records of a table. Its methods may be called while Run is running.
type Folder struct {
	o    Options
	fsys fs.FS
	ties ties
	// The files; only Run uses them.
	newest time.Time     // of all records
	idle   time.Duration // pauses since the last record of the table

	mu     sync.Mutex // Run alone writes what follows, except tip
	folded Folded
	files  map[string]*file
	queue  []*group // in the order in which they were read
	open   int      // groups with changes that are not applied
	status Status
	begun  bool
	tip    bool // the caller waits for the tip
}

// Open opens a folder.
func Open(o Options) (*Folder, error) {
	if o.Allowance == 0 {
		o.Allowance = DefaultAllowance
	}
	f := &Folder{o: o, fsys: os.DirFS(o.Dir), files: map[string]*file{}, ties: ties{groups: map[moment]*group{}}}
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return nil, source.Damaged(source.Unrecognized, source.Position{File: o.Dir}, err, "expected a folder with the records of a Kinesis data stream")
	}
	if c := o.Checkpoint; c != nil {
		f.folded, f.begun, f.status = c.Folded, c.Begun, Status{Watermark: c.Watermark, Late: c.Late}
		for _, of := range c.Files {
			f.files[of.Name] = &file{File: of, from: of.Applied}
		}
	}
	return f, nil
}

// Run reads the records and calls apply with them, until ctx ends, apply fails, or the folder
// contradicts an earlier look. Errors of the folder are of type *[source.Error].
func (f *Folder) Run(ctx context.Context, apply func(context.Context, []Record) error) error {
	for {
		found, err := f.pass(ctx, apply)
		if err == nil && !found {
			err = f.rest(ctx, apply)
		}
		if err == nil {
			err = f.o.Sleep(ctx, pollEvery)
		}
		if err != nil {
			return err
		}
	}
}

// pass reads all files up to their current ends. It reports whether it found records of the table.
func (f *Folder) pass(ctx context.Context, apply func(context.Context, []Record) error) (found bool, err error) {
	delivered, err := f.delivered() // before the files: its records are in them
	if err != nil {
		return false, err
	}
	files, err := f.look()
	if err != nil {
		return false, err
	}
	for _, of := range files {
		for of.Offset < of.size {
			lines, err := f.read(of)
			if err != nil {
				return found, err
			}
			if len(lines) == 0 { // the last line is still being written
				break
			}
			some, err := f.process(ctx, of, lines, apply)
			if err != nil {
				return found, err
			}
			found = found || some
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	newest, stated := f.newest, delivered.After(f.newest)
	if stated {
		newest = delivered
	}
	if !newest.IsZero() {
		if now := f.o.Now(); newest.After(now) { // a wrong clock
			newest = now.UTC()
		}
		if w := newest.Add(-f.o.Allowance); w.After(f.status.Watermark) {
			f.status.Watermark, f.status.Delivered = w, stated
		}
	}
	f.fold(files)
	return found, nil
}

// rest settles the changes whose order no further record will show: after the allowance, or
// at the tip.
func (f *Folder) rest(ctx context.Context, apply func(context.Context, []Record) error) error {
	f.idle += pollEvery
	f.mu.Lock()
	tip, begun := f.tip, f.begun
	f.mu.Unlock()
	if tip {
		found, err := f.tails(ctx, apply)
		if err != nil {
			return err
		}
		if !found && !begun {
			return source.Damaged(source.ReplayGap, source.Position{File: f.o.Dir}, nil, "the folder has no record of table %s, so it does not show that all changes are applied: name the folder with the records of the table", f.o.Table)
		}
	}
	if !tip && f.idle < f.o.Allowance {
		return nil
	}
	for i := 0; i < len(f.queue) && f.ties.open > 0; i++ {
		if err := f.settle(ctx, f.queue[i], apply); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = f.ties.open
	return nil
}

// delivered returns the time in [DeliveredFile]; the zero time if there is no file, or if it is being written.
func (f *Folder) delivered() (time.Time, error) {
	text, err := fs.ReadFile(f.fsys, DeliveredFile)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, source.Damaged(source.Unrecognized, f.at(DeliveredFile, 0), err, "the file cannot be read")
	}
	line, whole := strings.CutSuffix(string(text), "\n")
	if !whole {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(line))
	if err != nil {
		return time.Time{}, source.Damaged(source.Unrecognized, f.at(DeliveredFile, 1), err, "expected a time such as 2026-11-29T12:00:00Z, up to which all records are in the folder")
	}
	return at.UTC(), nil
}

// at returns a position for messages.
func (f *Folder) at(name string, line int) source.Position {
	return source.Position{File: path.Join(f.o.Dir, name), Line: line}
}

// list returns the sizes of the files by name, without those up to folded.Through. It returns
// an error if the number or the size of these has changed.
func (f *Folder) list(folded Folded) (sizes map[string]int64, err error) {
	var now Folded
	sizes = map[string]int64{}
	err = fs.WalkDir(f.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && name != "." && strings.ContainsAny(path.Base(name)[:1], "._") { // by convention incomplete
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := fs.Stat(f.fsys, name)
		if err != nil {
			return err
		}
		if name > folded.Through {
			sizes[name] = info.Size()
			return nil
		}
		now = Folded{folded.Through, now.Files + 1, now.Bytes + info.Size()}
		return nil
	})
	if err != nil {
		return nil, source.Damaged(source.Unrecognized, source.Position{File: f.o.Dir}, err, "the folder cannot be read")
	}
	if now.Files != folded.Files || now.Bytes != folded.Bytes {
		return nil, source.Damaged(source.ReplayGap, source.Position{File: f.o.Dir}, nil, "the files up to %s have changed since they were read: there are %d with %d bytes, expected %d with %d; %s",
			folded.Through, now.Files, now.Bytes, folded.Files, folded.Bytes, restore)
	}
	return sizes, nil
}

// look looks for new files and new sizes, and returns the files by name. A deleted file is an
// error, and so is one that lacks bytes that were read.
func (f *Folder) look() (files []*file, err error) {
	sizes, err := f.list(f.folded)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		of := f.files[name]
		size, ok := sizes[name]
		if !ok {
			return nil, source.Damaged(source.ReplayGap, f.at(name, 0), nil, "the file is gone; %s", restore)
		}
		if was := max(of.Offset, of.Applied); size < was {
			return nil, source.Damaged(source.ReplayGap, f.at(name, 0), nil, "the file has %d bytes, but %d were read: it was replaced or cut; %s", size, was, restore)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		of := f.files[name]
		if of == nil {
			of = &file{File: File{Name: name}}
			f.files[name] = of
		}
		of.size = sizes[name]
		files = append(files, of)
	}
	return files, nil
}

// restore is the remedy for a folder that has changed.
const restore = "only append to the folder: restore it, and start again"

// fold removes from f.files those that were read to their ends, oldest names first, except
// the last maxFiles. It stops at a file that has unread lines, or records that still
// determine the order of later ones.
func (f *Folder) fold(files []*file) {
	if len(files) <= maxFiles {
		return
	}
	held := map[string]bool{}
	for _, g := range f.queue {
		held[g.file] = true
	}
	for _, of := range files[:len(files)-maxFiles] {
		if of.Offset < of.size || held[of.Name] {
			return
		}
		f.folded = Folded{of.Name, f.folded.Files + 1, f.folded.Bytes + of.size}
		delete(f.files, of.Name)
	}
}

// Checkpoint returns the current progress.
func (f *Folder) Checkpoint() Checkpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := Checkpoint{Watermark: f.status.Watermark, Begun: f.begun, Late: f.status.Late, Folded: f.folded}
	first := map[string]*group{} // in each file
	for _, g := range f.queue {
		if first[g.file] == nil {
			first[g.file] = g
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		of := f.files[name].File
		if g := first[name]; g != nil && g.offset < of.Offset {
			of.Offset, of.Line = g.offset, g.line
		}
		c.Files = append(c.Files, of)
	}
	return c
}

// Status returns the current state.
func (f *Folder) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Tip returns a function that reports whether all records are applied that are in the folder now. With
// [DeliveredFile], the watermark must also have passed this moment: later records may be of earlier changes.
func (f *Folder) Tip() (passed func() bool) {
	f.mu.Lock()
	f.tip = true
	folded := f.folded
	f.mu.Unlock()
	var now time.Time
	delivered, err := f.delivered() // Run finds an error too, and ends
	if !delivered.IsZero() {
		now = f.o.Now()
	}
	ends, failed := f.list(folded)
	err = errors.Join(err, failed)
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name, end := range ends {
			if name <= f.folded.Through {
				continue
			}
			if of := f.files[name]; of == nil || max(of.Offset, of.tail) < end {
				return false
			}
		}
		return err == nil && f.begun && f.open == 0 && !f.status.Watermark.Before(now)
	}
}
