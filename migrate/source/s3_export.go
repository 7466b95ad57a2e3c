package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// maxManifestBytes bounds a manifest-summary.json; real ones are below 2 KB.
const maxManifestBytes = 1 << 20

// maxDataFiles bounds the data files of one export. At 10 GB per partition, a petabyte has as
// many.
const maxDataFiles = 100_000

// maxExportDepth bounds the search for exports below the given folder.
const maxExportDepth = 6

// exportFile is one line of manifest-files.json.
type exportFile struct {
	s3export.File
	path   string       // inside the tree
	line   int          // in manifest-files.json
	judged *atomic.Bool // the MD5 matches the manifest
}

// openExport opens the exports to S3 in and below a folder: full exports of several tables,
// each with any number of incremental exports that follow.
func openExport(t tree, dir string) (*Source, error) {
	found, err := findExports(t, dir, maxExportDepth)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		for _, name := range fixtures.SourceNames {
			name = path.Base(name)
			if info, err := fs.Stat(t, path.Join(dir, name)); err == nil && !info.IsDir() {
				return nil, Damaged(Unrecognized, Position{File: t.label(dir)}, nil,
					"the folder holds no export to S3, but %s is in it: name that file, or the fixture folder above", name)
			}
		}
		return nil, Damaged(Unrecognized, Position{File: t.label(dir)}, nil,
			"the folder holds no export to S3: no %s, %s or %s/<export id>/%s is in it; nor is it a fixture: %s", s3export.SummaryName, s3export.FilesName, s3export.Folder, s3export.DataFolder, fixtures.Below(t, dir))
	}
	src := &Source{Format: "s3-export", Integrity: "manifests, MD5 and item count of each data file"}
	full, after := map[string]exportPart{}, map[string][]exportPart{}
	var names []string
	listed := map[string]bool{}
	folders := map[string]bool{}
	for _, dir := range found {
		part, err := openOneExport(t, dir)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, part.table) {
			names = append(names, part.table)
		}
		folders[path.Join(dir, s3export.DataFolder)] = true
		for _, f := range part.files {
			listed[f.path], folders[path.Dir(f.path)] = true, true
		}
		if part.incremental {
			after[part.table] = append(after[part.table], part)
			continue
		}
		if other, ok := full[part.table]; ok {
			return nil, Damaged(Unrecognized, Position{File: t.label(dir)}, nil,
				"this is a full export of table %s, and so is %s: open only one of them", part.table, t.label(other.dir))
		}
		full[part.table] = part
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if dir != "." && !strings.HasPrefix(folder, dir+"/") {
			continue // exports that are not opened also have data there
		}
		if err := refuseUnlisted(t, folder, listed); err != nil {
			return nil, err
		}
	}
	records, err := recordsOf(t, dir, found, full)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		part, ok := full[name]
		if !ok {
			first := after[name][0]
			return nil, Damaged(ReplayGap, Position{File: t.label(first.dir)}, nil,
				"the incremental export of table %s has only changes: put the preceding full export below the same folder, and open that folder", name)
		}
		table := &Table{Name: name, ExportTime: part.to, Declared: part.items, export: &part, tree: t, entries: part.entries(t)}
		if err := table.describeExport(t, part.dir); err != nil {
			return nil, err
		}
		switch {
		case records[name] != nil:
			if len(after[name]) > 0 {
				return nil, Damaged(Unsupported, records[name].at, nil, "table %s has incremental exports and change records: use one of them", name)
			}
			r, err := replayRecords(t, part, records[name])
			if err != nil {
				return nil, err
			}
			src.Format, src.Integrity = formatRecords, src.Integrity+"; change records fit the items and one another"
			table.follow(r)
		case len(after[name]) > 0:
			r, err := replay(t, part, after[name])
			if err != nil {
				return nil, err
			}
			src.Format, src.Integrity = "s3-incremental-export", src.Integrity+"; incremental exports are contiguous, and changes match the items"
			table.follow(r)
		}
		src.Tables = append(src.Tables, table)
	}
	return src, nil
}

// formatRecords is the format of a full export to S3 with change records after it.
const formatRecords = "s3-export-with-change-records"

// follow gives the table of a full export the state after later changes.
func (t *Table) follow(r *replayed) {
	t.ExportTime, t.Declared, t.entries = r.after[len(r.after)-1].to, -1, r.entries
	t.FullTime, t.changes, t.export = r.full.to, r.eachChange, nil
}

// exportPart is one export with its parsed manifests.
type exportPart struct {
	dir, table  string
	id          string // of the table; "" if the manifest lacks it
	incremental bool
	files       []exportFile
	items       int64     // by the manifest
	from, to    time.Time // from is zero for a full export
}

// entries returns an iterator over the items of a full export, for Table.entries.
func (p exportPart) entries(t tree) func(yield func(Entry, error) bool) {
	return func(yield func(Entry, error) bool) {
		if err := p.read(t, yield); err != nil && !errors.Is(err, errStopped) {
			yield(Entry{}, err)
		}
	}
}

// read yields the items of a full export.
func (p exportPart) read(t tree, yield func(Entry, error) bool) error {
	return p.lines(t, func(text []byte, at Position) error {
		e, err := parseEntry(text, wrappedItem, at)
		if err != nil && !OfItem(err) {
			return err
		}
		if !yield(e, err) {
			return errStopped
		}
		return nil
	})
}

// lines yields the lines of all data files.
func (p exportPart) lines(t tree, yield func(text []byte, at Position) error) error {
	for _, f := range p.files {
		if err := readDataFile(t, f, yield); err != nil {
			return err
		}
	}
	return nil
}

// findExports lists the folders in and below dir that are exports, complete or not.
func findExports(t tree, dir string, depth int) ([]string, error) {
	entries, err := fs.ReadDir(t, dir)
	if err != nil {
		return nil, Damaged(Unrecognized, Position{File: t.label(dir)}, err, "cannot read the folder")
	}
	data := false
	for _, e := range entries {
		switch name := e.Name(); {
		case name == s3export.SummaryName, name == s3export.FilesName, name == s3export.StartedName && !e.IsDir():
			return []string{dir}, nil
		case name == s3export.DataFolder && e.IsDir():
			data = true
		}
	}
	if data && path.Base(path.Dir(dir)) == s3export.Folder {
		return []string{dir}, nil
	}
	var found []string
	for _, e := range entries {
		if !e.IsDir() || depth == 0 {
			continue
		}
		below, err := findExports(t, path.Join(dir, e.Name()), depth-1)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// isExport reports whether a folder is one export.
func isExport(t tree, dir string) bool {
	found, err := findExports(t, dir, 0)
	return err == nil && slices.Equal(found, []string{dir})
}

// openOneExport reads the manifests of the export in dir and checks them against the existing
// files.
func openOneExport(t tree, dir string) (exportPart, error) {
	at := Position{File: t.label(path.Join(dir, s3export.SummaryName))}
	part := exportPart{dir: dir}
	summary, err := readSummary(t, path.Join(dir, s3export.SummaryName))
	if err != nil {
		return part, err
	}
	if part.files, err = readFiles(t, dir, summary); err != nil {
		return part, err
	}
	for _, f := range part.files {
		part.items += *f.ItemCount
		if _, err := fs.Stat(t, f.path); err != nil {
			return part, Damaged(DataFileMissing, Position{File: t.label(f.path)}, nil,
				"the data file is missing; line %d of %s lists it", f.line, s3export.FilesName)
		}
	}
	if part.items != *summary.ItemCount {
		return part, Damaged(CountMismatch, at, nil,
			"%s says %s in all, but the files of %s add up to %d", s3export.SummaryName, phrase.Counted(*summary.ItemCount, "item"), s3export.FilesName, part.items)
	}
	part.table, _ = s3export.TableName(summary.TableArn)
	part.id = summary.TableID
	type moment struct {
		name, text string
		into       *time.Time
	}
	times := []moment{{"exportTime", summary.ExportTime, &part.to}}
	if part.incremental = summary.ExportType == s3export.TypeIncremental; part.incremental {
		times = []moment{{"exportFromTime", summary.ExportFromTime, &part.from}, {"exportToTime", summary.ExportToTime, &part.to}}
	}
	for _, m := range times {
		if *m.into, err = time.Parse(time.RFC3339Nano, m.text); err != nil {
			return part, Damaged(ManifestInvalid, at, nil, "%s %q is not a time", m.name, m.text)
		}
	}
	return part, nil
}

func readSummary(t tree, name string) (*s3export.Summary, error) {
	at := Position{File: t.label(name)}
	text, err := readManifest(t, name)
	if err != nil {
		return nil, err
	}
	var s s3export.Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, Damaged(ManifestInvalid, at, JSONCause(err), "the manifest cannot be parsed")
	}
	invalid := func(format string, args ...any) (*s3export.Summary, error) {
		return nil, Damaged(ManifestInvalid, at, nil, format, args...)
	}
	_, named := s3export.TableName(s.TableArn)
	switch {
	case s.Version != s3export.VersionFull && s.Version != s3export.VersionIncremental:
		return invalid("the manifest has version %q, but only %s and %s are known", s.Version, s3export.VersionFull, s3export.VersionIncremental)
	case s.ExportType != "" && s.ExportType != s3export.TypeFull && s.ExportType != s3export.TypeIncremental:
		return invalid("exportType is %q, want %s or %s", s.ExportType, s3export.TypeFull, s3export.TypeIncremental)
	case s.OutputFormat != s3export.FormatDynamoDBJSON && s.OutputFormat != s3export.FormatIon:
		return invalid("outputFormat is %q, want %s or %s", s.OutputFormat, s3export.FormatDynamoDBJSON, s3export.FormatIon)
	case s.ItemCount == nil || *s.ItemCount < 0:
		return invalid("the manifest has no itemCount")
	case !named:
		return invalid("tableArn %q names no table", s.TableArn)
	}
	return &s, nil
}

// readManifest reads a whole manifest, and checks it against its checksum file if there is one.
func readManifest(t tree, name string) ([]byte, error) {
	at := Position{File: t.label(name)}
	f, err := t.Open(name)
	if isNotExist(err) {
		return nil, Damaged(ManifestMissing, at, nil, "the manifest is missing")
	}
	if err != nil {
		return nil, Damaged(ManifestMissing, at, err, "the manifest cannot be opened")
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, Damaged(ManifestMissing, at, err, "the manifest cannot be read")
	}
	if len(text) > maxManifestBytes {
		return nil, Damaged(ManifestInvalid, at, nil, "the manifest is longer than %d bytes", maxManifestBytes)
	}
	return text, checkCompanion(t, name, s3export.ChecksumOf(text))
}

// checkCompanion compares the MD5 of a manifest with its checksum file, if there is one.
func checkCompanion(t tree, name, sum string) error {
	for _, companion := range s3export.ChecksumNames(name) {
		want, err := fs.ReadFile(t, companion)
		if isNotExist(err) {
			continue
		}
		if err != nil {
			return Damaged(ManifestInvalid, Position{File: t.label(companion)}, err, "the checksum file cannot be read")
		}
		if text := string(bytes.TrimSpace(want)); text != sum {
			return Damaged(ChecksumMismatch, Position{File: t.label(name)}, nil, "the MD5 of the manifest is %s, but %s says %.40q", sum, path.Base(companion), text)
		}
	}
	return nil
}

// readFiles reads manifest-files.json, one JSON object per line.
func readFiles(t tree, dir string, summary *s3export.Summary) ([]exportFile, error) {
	name := path.Join(dir, s3export.FilesName)
	if _, err := fs.Stat(t, name); isNotExist(err) {
		return nil, Damaged(ManifestMissing, Position{File: t.label(name)}, nil, "the manifest is missing")
	}
	in, err := t.open(name)
	if err != nil {
		return nil, err
	}
	defer in.close()
	var files []exportFile
	seen := map[string]int{}
	l := in.lines()
	for {
		text, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at := l.at()
		var f exportFile
		if err := json.Unmarshal(text, &f.File); err != nil {
			return nil, Damaged(ManifestInvalid, at, JSONCause(err), "the manifest cannot be parsed")
		}
		if f.ItemCount == nil || *f.ItemCount < 0 || f.MD5Checksum == "" || f.DataFileS3Key == "" {
			return nil, Damaged(ManifestInvalid, at, nil, "the line lacks itemCount, md5Checksum or dataFileS3Key")
		}
		f.line = l.texts.Line()
		if f.path, err = summary.DataPath(dir, f.DataFileS3Key); err != nil {
			return nil, Damaged(ManifestInvalid, at, err, "dataFileS3Key does not name a file of the export")
		}
		if other, ok := seen[f.path]; ok {
			return nil, Damaged(ManifestInvalid, at, nil, "line %d lists the same data file %s", other, f.DataFileS3Key)
		}
		seen[f.path], f.judged = l.texts.Line(), &atomic.Bool{}
		if files = append(files, f); len(files) > maxDataFiles {
			return nil, Damaged(TooLong, at, nil, "the manifest lists more than %d data files", maxDataFiles)
		}
	}
	sum, err := in.checksum()
	if err != nil {
		return nil, err
	}
	return files, checkCompanion(t, name, sum)
}

func refuseUnlisted(t tree, dir string, listed map[string]bool) error {
	entries, err := fs.ReadDir(t, dir)
	if isNotExist(err) {
		return nil // an export without items may have no data folder
	}
	if err != nil {
		return Damaged(Unrecognized, Position{File: t.label(dir)}, err, "cannot read the folder")
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() || listed[name] || s3export.IsChecksum(name) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		return Damaged(DataFileExtra, Position{File: t.label(name)}, nil, "the data file is not listed in %s", s3export.FilesName)
	}
	return nil
}

// judge compares the MD5 of a data file with the manifest before its contents are used, since
// damaged contents mean nothing. The first time, this is an extra read of the file.
func (f *exportFile) judge(t tree) error {
	if f.judged.Load() {
		return nil
	}
	sum, err := t.sum(f.path)
	if err != nil {
		return err
	}
	if sum == f.MD5Checksum {
		f.judged.Store(true)
		return nil
	}
	differs := fmt.Sprintf("the MD5 of the data file is %s, but %s says %s", sum, s3export.FilesName, f.MD5Checksum)
	if known, ok := errors.AsType[*Error](t.unpack(f.path)); ok && (known.Damage == PackingTruncated || known.Damage == PackingCorrupt) {
		known.Detail += "; " + differs
		return known
	}
	return Damaged(ChecksumMismatch, Position{File: t.label(f.path)}, nil, "%s", differs)
}

// readDataFile yields the lines of one data file and checks its count and MD5.
func readDataFile(t tree, f exportFile, yield func(text []byte, at Position) error) error {
	if err := f.judge(t); err != nil {
		return err
	}
	in, err := t.open(f.path)
	if err != nil {
		return err
	}
	defer in.close()
	count := int64(0)
	l := in.lines()
	for {
		text, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if count++; count > *f.ItemCount {
			return Damaged(CountMismatch, l.at(), nil, "the file holds more items than the %d that line %d of %s declares", *f.ItemCount, f.line, s3export.FilesName)
		}
		if err := yield(text, l.at()); err != nil {
			return err
		}
	}
	sum, err := in.checksum()
	if err != nil {
		return err
	}
	switch {
	case sum != f.MD5Checksum: // it has changed since
		return Damaged(ChecksumMismatch, Position{File: in.label}, nil, "the MD5 of the data file is %s, but %s says %s", sum, s3export.FilesName, f.MD5Checksum)
	case count != *f.ItemCount:
		return Damaged(CountMismatch, Position{File: in.label}, nil, "the file holds %s, but line %d of %s says %d", phrase.Counted(count, "item"), f.line, s3export.FilesName, *f.ItemCount)
	}
	return nil
}
