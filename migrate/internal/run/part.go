package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Parts of one load or verification run in processes of their own, each over its files of
// the source. They share a folder, or their files of it are brought into one: while a part
// runs, its checkpoint is there; when it is done, what it did and found. Who finishes
// reads that of all parts, and does what none of them can know alone.

// What is done in parts, as names of files begin.
const (
	loading   = "load"
	verifying = "verify"
)

// The files of a part.
const (
	partCheckpoint = "checkpoint" // how far its load has come
	partDone       = "done"       // what it did, when it is complete
	partRows       = "rows"       // of a load: the hashes of its row keys, in order
)

func (o Options) verb() string {
	if o.Warn { // as loads do
		return loading
	}
	return verifying
}

// partFile is the name of a file of a part.
func (o Options) partFile(p source.Part, kind string) string {
	return filepath.Join(o.Parts, fmt.Sprintf("%s-%d-of-%d.%s", o.verb(), p.Index, p.Of, kind))
}

// tablePart is the work on a table in parts.
type tablePart struct{ *Job }

// completePart is what a part that is complete leaves for who finishes.
type completePart struct {
	Identity string         `json:"identity"` // of what all parts are parts of
	Report   *report.Report `json:"report"`
	Tables   []partTable    `json:"tables"` // in the order of the source
}

// partTable is what is known of a table after one part.
type partTable struct {
	Joiner string `json:"joiner,omitempty"` // that the keys of the part could have
	Row    []byte `json:"row,omitempty"`    // that the load of the part wrote last
	Rows   int64  `json:"rows,omitempty"`   // whose hashes the load of the part kept
	// Ranges are, by Bigtable table, what its items ask for in each range of its keys,
	// and what is there of the range that is the part's to read.
	Ranges tableRanges `json:"ranges,omitempty"`
}

// rangeSums is what is in a range of row keys, by the items and by the table.
type rangeSums struct {
	layout.Span `json:"-"`

	Wanted sums  `json:"wanted"`
	Found  sums  `json:"found,omitzero"`
	Rows   int64 `json:"rows,omitzero"` // that were found
}

// tableRanges are the ranges of tables, by their ids; none where there are no parts.
type tableRanges map[string][]rangeSums

// sums are the sums of what is compared.
type sums struct {
	Cells extsort.Bag `json:"cells"`
	Items extsort.Bag `json:"items"`
}

func (s *sums) join(o sums) {
	s.Cells.Join(o.Cells)
	s.Items.Join(o.Items)
}

// partOf is the part of a source that the options name.
func partOf(src *source.Source, o Options) (*source.Source, error) {
	if o.Parts == "" {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: src.Path}, nil, "part %v has nowhere to keep how far it is: name the folder of the parts", o.Share)
	}
	if err := mapped(src, o); err != nil {
		return nil, err
	}
	return src.Part(o.Share)
}

// mapped refuses to infer the mapping: a part sees too little for it.
func mapped(src *source.Source, o Options) error {
	if len(o.Mappings) > 0 {
		return nil
	}
	return source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil, "parts need a mapping that is given, since each sees its own items alone: infer it first, from the whole source")
}

// identify sets the identity of what the run is a part of: the source, where its rows go
// and how, and in how many parts.
func (r *Run) identify(src *source.Source, of int) error {
	o := r.Options
	files, err := src.Fingerprint()
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "%s %d %s %q %q %q %q %v\n", o.verb(), of, files, o.Target, o.Project, o.Instance, o.Timestamps, o.LenientSets)
	for _, j := range r.Jobs {
		if j.Mapping.ProveVersions() != nil {
			return source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil,
				"table %s: its mapping has rules whose items are copies of others' (latest), which may be in another part: it is to be dealt with as a whole", j.Source.Name)
		}
		text = fmt.Appendf(text, "%q %q %d\n", j.Source.Name, j.Targets(), j.Micros)
		if spec := j.Mapping.Spec(); spec != nil {
			file, err := spec.YAML()
			if err != nil {
				return fmt.Errorf("writing the mapping of table %s: %w", j.Source.Name, err)
			}
			text = append(text, file...)
		}
	}
	sum := sha256.Sum256(text)
	r.identity = hex.EncodeToString(sum[:])
	return nil
}

// beginPart finds out whether the part is complete, and how its work is to be kept.
func (r *Run) beginPart(src *source.Source) error {
	if err := r.Options.aloneInFolder(); err != nil {
		return err
	}
	if err := r.identify(src, r.Options.Share.Of); err != nil {
		return err
	}
	done, err := r.readPart(r.Options.Share)
	if err != nil {
		return err
	}
	if done != nil {
		r.complete, r.Report = done, done.Report
		r.Report.Warnings = append(r.Report.Warnings, fmt.Sprintf("part %v was complete before: %s tells", r.Options.Share, r.Options.partFile(r.Options.Share, partDone)))
		return nil
	}
	for _, j := range r.Jobs {
		if r.Options.verb() == loading && j.Mapping.Spec() != nil { // else nothing is noted of the table
			j.parts = loadnote.PartsPrefix + r.identity[:16] + "/"
		}
		j.Options.Checkpoint = r.Options.partFile(r.Options.Share, partCheckpoint)
		if r.Options.verb() == verifying {
			j.ranges = rangesOf(tablePart{j}.cuts(r.Options.Share.Of))
		}
	}
	return nil
}

// rangesOf are the ranges that begin at cuts, by table.
func rangesOf(cuts map[string][][]byte) tableRanges {
	ranges := tableRanges{}
	for table, keys := range cuts {
		for _, span := range spansOf(keys) {
			ranges[table] = append(ranges[table], rangeSums{Span: span})
		}
	}
	return ranges
}

// wants counts what an item puts in a row, by the range of the row.
func (t tableRanges) wants(table string, row []byte, what sums) {
	ranges := t[table]
	for i := range ranges {
		if inSpan(ranges[i].Span, row) {
			ranges[i].Wanted.join(what)
			return
		}
	}
}

// Complete reports whether the run is a part that is done: its report is that of then.
func (r *Run) Complete() bool { return r.complete != nil }

// rowsFile is the file of the row keys of a load's part.
func (j tablePart) rowsFile(p source.Part) string {
	return j.Options.partFile(p, partRows) + "." + j.Report.Target
}

// keepRows opens a file for the part's rows. It takes its place with placeRows, when it is
// whole: the same part may be under way in another process, or be complete by then.
func (j tablePart) keepRows() (*os.File, error) {
	o := j.Options
	if err := os.MkdirAll(o.Parts, 0o777); err != nil {
		return nil, fmt.Errorf("making the folder of the parts: %w", err)
	}
	f, err := os.CreateTemp(o.Parts, filepath.Base(j.rowsFile(o.Share))+".*")
	if err != nil {
		return nil, fmt.Errorf("keeping the rows of part %v: %w", o.Share, err)
	}
	return f, nil
}

// placeRows puts what keepRows opened in its place, or removes it where err tells that it
// is not whole.
func (j tablePart) placeRows(f *os.File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), j.rowsFile(j.Options.Share))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // else it goes with the parts
	}
	return err
}

// EndPart notes that the part is complete, with its report.
func (r *Run) EndPart() error {
	o := r.Options
	kept := &checkpoint{path: o.partFile(o.Share, partCheckpoint)}
	if before, err := r.readPart(o.Share); err != nil {
		return err
	} else if before != nil {
		r.Report.Warnings = append(r.Report.Warnings, fmt.Sprintf("part %v was completed by another process meanwhile: what that one did counts", o.Share))
		return kept.remove()
	}
	done := completePart{Identity: r.identity, Report: r.Report}
	for _, j := range r.Jobs {
		t := partTable{Joiner: j.joiner, Row: j.lastRow, Ranges: j.ranges}
		if o.verb() == loading {
			t.Rows = j.Report.Rows
		}
		done.Tables = append(done.Tables, t)
	}
	text, err := json.Marshal(done)
	if err == nil {
		err = os.MkdirAll(o.Parts, 0o777)
	}
	if err == nil {
		err = WriteWhole(o.partFile(o.Share, partDone), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("noting that part %v is complete: %w", o.Share, err)
	}
	return kept.remove()
}

// readPart reads what a part did, nil where it is not complete.
func (r *Run) readPart(p source.Part) (*completePart, error) {
	name := r.Options.partFile(p, partDone)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what part %v did: %w", p, err)
	}
	done := completePart{Report: report.New(r.Options.MaxDifferences)}
	if err := json.Unmarshal(text, &done); err != nil {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: name}, source.JSONCause(err), "the file does not tell what a part did: remove it, and deal with part %v again", p)
	}
	if done.Identity != r.identity || len(done.Tables) != len(r.Jobs) {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: name}, nil,
			"part %v is of another %s: the source, the mapping or the target is another, or has changed since; name another folder, or remove the file to deal with the part again", p, r.Options.verb())
	}
	return &done, nil
}

// partName is the name of a file of a part. A lock is held by the process of a part that is
// under way, and says nothing where there is no such process.
var partName = regexp.MustCompile(`^([a-z]+)-([0-9]{1,9})-of-([0-9]{1,9})\.(checkpoint|done|rows\..+|lock)$`)

// partsThere are the parts that have left a file in the folder, by how many there are to
// be.
func (o Options) partsThere() (map[int]map[int]bool, error) {
	entries, err := os.ReadDir(o.Parts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for parts: %w", err)
	}
	there := map[int]map[int]bool{}
	for _, e := range entries {
		m := partName.FindStringSubmatch(e.Name())
		if m == nil || m[1] != o.verb() || m[4] == "lock" {
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

// partsOf is how the files of parts of so many are named.
func (o Options) partsOf(of int) string { return fmt.Sprintf("%s-*-of-%d.*", o.verb(), of) }

// aloneInFolder refuses a part where the folder has parts of another number: together
// they would never be finished.
func (o Options) aloneInFolder() error {
	there, err := o.partsThere()
	if err != nil {
		return err
	}
	for _, of := range slices.Sorted(maps.Keys(there)) {
		if of != o.Share.Of {
			return source.Damaged(source.CheckpointInvalid, source.Position{File: o.Parts}, nil,
				"the folder has parts of %d, and this one is part %v: expected those of one %s; name another folder, or remove %s there to begin in parts of %d", of, o.Share, o.verb(), o.partsOf(of), o.Share.Of)
		}
	}
	return nil
}

// readParts reads what all parts did, and refuses where one is not complete.
func (r *Run) readParts(src *source.Source) ([]*completePart, error) {
	o := r.Options
	at := source.Position{File: o.Parts}
	there, err := o.partsThere()
	if err != nil {
		return nil, err
	}
	numbers := slices.Sorted(maps.Keys(there))
	if len(numbers) > 1 {
		return nil, source.Damaged(source.CheckpointInvalid, at, nil,
			"the folder has parts of %d and parts of %d: expected those of one %s; remove %s or %s, whichever are not to count", numbers[0], numbers[1], o.verb(), o.partsOf(numbers[0]), o.partsOf(numbers[1]))
	}
	of := 0
	if len(numbers) == 1 {
		of = numbers[0]
	}
	begun := there[of]
	if of == 0 {
		return nil, source.Damaged(source.CheckpointInvalid, at, nil, "the folder has no part of a %s: expected %s and so on, as parts leave them until they are finished", o.verb(), filepath.Base(o.partFile(source.Part{Index: 1, Of: 2}, partDone)))
	}
	if err := r.identify(src, of); err != nil {
		return nil, err
	}
	var parts []*completePart
	var lacking []string
	for i := 1; i <= of; i++ {
		p := source.Part{Index: i, Of: of}
		done, err := r.readPart(p)
		if err != nil {
			return nil, err
		}
		switch {
		case done != nil:
			parts = append(parts, done)
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
		return nil, source.Damaged(source.CheckpointInvalid, at, nil, "not all parts are complete: %s lacking of %d", text, of)
	}
	return parts, nil
}

// removeParts removes the files of parts that are finished, also of processes that were
// killed.
func (r *Run) removeParts(of int) error {
	entries, err := os.ReadDir(r.Options.Parts)
	for _, e := range entries {
		m := partName.FindStringSubmatch(e.Name())
		if m == nil || m[1] != r.Options.verb() || m[3] != strconv.Itoa(of) && m[4] != "lock" {
			continue
		}
		// A process that is at its end removes its lock itself.
		if gone := os.Remove(filepath.Join(r.Options.Parts, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return fmt.Errorf("removing what complete parts left: %w", err)
	}
	return nil
}

// FinishLoad ends a load whose parts are complete: it makes sure that they are, and that
// no item of one met one of another, and notes how the tables are to be read.
func FinishLoad(ctx context.Context, src *source.Source, o Options, connect func(*Run)) (*Run, error) {
	o = o.Normalized()
	if err := mapped(src, o); err != nil {
		return nil, err
	}
	r, err := newRun(ctx, src, o)
	if err != nil {
		return nil, err
	}
	parts, err := r.readParts(src)
	if err != nil {
		return nil, err
	}
	connect(r)
	for i, j := range r.Jobs {
		if err := (tablePart{j}).holdsParts(ctx, r.B, parts, i); err != nil {
			return nil, err
		}
	}
	apart, err := r.partsApart(parts)
	if err != nil {
		return nil, err
	}
	joined := report.Joined(o.MaxDifferences, reportsOf(parts))
	for _, t := range joined.Tables {
		joined.Restate(loadCheck, t.Target, phrase.Counted(t.Items, "item"))
	}
	if !apart { // items of several parts are in one row, or may be in one of an index
		for i, j := range r.Jobs {
			if joined.Tables[i].DeadLetters > 0 { // the parts told of them
				j.Letters, j.Source.Lenient = &deadLetters{io.Discard, r.Report}, true
			}
		}
		if err := r.examine(ctx, src); err != nil {
			return nil, fmt.Errorf("the parts are written, but do not fit together: %w", err)
		}
		for i, j := range r.Jobs {
			joined.Tables[i].Rows = j.Report.Rows
			if more := j.Report.DeadLetters - joined.Tables[i].DeadLetters; more > 0 {
				return nil, source.Damaged(source.CellCollision, source.Position{File: src.Path}, nil, "the parts of table %s are written, but do not fit together: %s met by those of other parts", j.Source.Name, phrase.Counted(more, "item"))
			}
		}
		joined.Rows = 0
		for _, t := range joined.Tables {
			joined.Rows += t.Rows
		}
	}
	if err := r.proveJoiners(parts); err != nil {
		return nil, err
	}
	for _, j := range r.Jobs {
		if _, err := j.writeSchema(ctx, r.B, false); err != nil {
			return nil, err
		}
	}
	r.Report = joined
	return r, r.removeParts(len(parts))
}

// proveJoiners decides what mappings leave open, by what the keys of all parts were found
// to be; where the source has been read as a whole, nothing is open any more.
func (r *Run) proveJoiners(parts []*completePart) (err error) {
	for i, j := range r.Jobs {
		if j.Mapping.ProveJoiner() == nil {
			continue
		}
		var joiners []string
		for _, p := range parts {
			joiners = append(joiners, p.Tables[i].Joiner)
		}
		if j.Mapping, err = j.Mapping.Proven(layout.JoinerOfAll(joiners...)); err != nil {
			return err
		}
	}
	return nil
}

func reportsOf(parts []*completePart) (reports []*report.Report) {
	for _, p := range parts {
		reports = append(reports, p.Report)
	}
	return reports
}

// holdsParts refuses to finish where the row that a part wrote last is gone, as after a
// restart of a Bigtable in memory.
func (j tablePart) holdsParts(ctx context.Context, b *Bigtable, parts []*completePart, table int) error {
	for i, p := range parts {
		row := p.Tables[table].Row
		if len(row) == 0 {
			continue
		}
		there, err := b.holds(ctx, j.Report.Target, row)
		if err != nil {
			return err
		}
		if !there {
			at := source.Part{Index: i + 1, Of: len(parts)}
			return source.Damaged(source.CheckpointInvalid, source.Position{File: j.Options.partFile(at, partDone)}, nil,
				"table %s does not hold row %q, which part %v wrote: remove the file, and load the part again", j.Report.Target, row, at)
		}
	}
	return nil
}

// partsApart reports whether no two parts have items in one row, so that none can meet.
func (r *Run) partsApart(parts []*completePart) (bool, error) {
	apart := true
	for i, j := range r.Jobs {
		rows := extsort.NewSet(j.Options.TempDir)
		shared, err := tablePart{j}.sharedRows(rows, parts, i)
		rows.Close()
		if err != nil {
			return false, err
		}
		apart = apart && !shared
		for _, x := range j.Indexes {
			apart = apart && x.Distinct()
		}
	}
	return apart, nil
}

// hashBytes is what the hash of a row takes in the file of a part.
const hashBytes = 16

// sharedRows reports whether parts have rows of a table in common. A file that does not have
// all rows of its part cannot tell.
func (j tablePart) sharedRows(rows *extsort.Set, parts []*completePart, table int) (bool, error) {
	for i, done := range parts {
		p := source.Part{Index: i + 1, Of: len(parts)}
		f, err := os.Open(j.rowsFile(p))
		if err != nil {
			return false, fmt.Errorf("reading which rows part %v wrote: %w", p, err)
		}
		rows.Join(f) // which closes it
		is, err := f.Stat()
		if err != nil {
			return false, fmt.Errorf("reading which rows part %v wrote: %w", p, err)
		}
		if n := done.Tables[table].Rows; is.Size() != n*hashBytes {
			return false, source.Damaged(source.CheckpointInvalid, source.Position{File: f.Name()}, nil,
				"the file has %s, and %s of part %v take %d: remove %s beside it, and load the part again",
				phrase.Counted(is.Size(), "byte"), phrase.Counted(n, "row"), p, n*hashBytes, filepath.Base(j.Options.partFile(p, partDone)))
		}
	}
	_, shared, _, err := rows.Finish(1, 1)
	return len(shared) > 0, err
}
