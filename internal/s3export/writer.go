package s3export

import (
	"bytes"
	"cmp"
	"crypto/md5" //nolint:gosec // the checksum that the format uses
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/gzip"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/iontext"
)

// DataFileBytes is the default uncompressed size of a data file. It is small enough for imports to
// read files in parallel.
const DataFileBytes = 128 << 20

// minIncrementalBytes is the smallest billed size of an incremental export.
const minIncrementalBytes = 10_000_000

// Export describes the export that a Writer makes. ID, TableArn and Time must be set.
type Export struct {
	ID       string // names the folder; see NewID
	TableArn string
	TableID  string
	Time     time.Time // time of the items, or end of the period of an incremental export

	// From, if set, makes the export incremental, with the changes from this time on. View selects
	// the images of the changes.
	From time.Time
	View string

	Bucket, Prefix string // bucket and prefix of the folder; the prefix is a valid path or ""
	Format         string // Default: FormatDynamoDBJSON
	SSEAlgorithm   string
	KMSKeyID       string
	Started        time.Time // Default: Time
	FileBytes      int       // uncompressed size of a data file. Default: DataFileBytes
}

// incremental reports whether the export has changes.
func (e Export) incremental() bool { return !e.From.IsZero() }

// NewID returns an id for an export at a given time. salt distinguishes exports at the same time.
func NewID(t time.Time, salt uint32) string { return fmt.Sprintf("%014d-%08x", t.UnixMilli(), salt) }

// Path returns the path of the export's folder in its bucket.
func (e Export) Path() string { return path.Join(e.Prefix, Folder, e.ID) }

// dataPath returns the folder of the data files below the root of the bucket; incremental
// exports share one.
func (e Export) dataPath() string {
	if e.incremental() {
		return path.Join(e.Prefix, Folder, DataFolder)
	}
	return path.Join(e.Path(), DataFolder)
}

// Writer writes an export as gzip data files. Its folder has a hidden name until Finish, which
// also moves the data files of an incremental export to the folder that such exports share.
type Writer struct {
	root *os.Root
	dir  string // until Finish
	of   Export

	files []File
	items int64
	bytes int64 // of items, by DynamoDB's count
	open  *dataFile
	line  []byte
}

// dataFile is an open data file.
type dataFile struct {
	name string
	file *os.File
	sum  hash.Hash
	zip  *gzip.Writer
	n    int64
	size int // as text
}

// Create begins an export below root, which represents a bucket. It removes the remains of an
// interrupted run of the same export. It returns fs.ErrExist if the export exists, and errors of
// the file system. The caller must call Finish or Abandon.
func Create(root *os.Root, e Export) (*Writer, error) {
	e.FileBytes, e.Format = cmp.Or(e.FileBytes, DataFileBytes), cmp.Or(e.Format, FormatDynamoDBJSON)
	if e.Started.IsZero() {
		e.Started = e.Time
	}
	if _, err := root.Stat(e.Path()); err == nil {
		return nil, &fs.PathError{Op: "create", Path: e.Path(), Err: fs.ErrExist}
	}
	w := &Writer{root: root, dir: path.Join(e.Prefix, Folder, "."+e.ID), of: e}
	if err := cmp.Or(root.RemoveAll(w.dir), w.unshare()); err != nil {
		return nil, err
	}
	return w, root.MkdirAll(path.Join(w.dir, DataFolder), 0o777)
}

// Add writes an item of a full export.
func (w *Writer) Add(item attr.Item) error {
	if w.of.Format == FormatIon {
		w.line = append(iontext.AppendLine(w.line[:0], iontext.Member{Name: "Item", Item: item}), '\n')
	} else {
		w.line = AppendItem(w.line[:0], item)
	}
	return w.add(item.Size())
}

// AddText writes an item of a full export in DynamoDB JSON, given its text from attr.AppendItemJSON
// and its size.
func (w *Writer) AddText(item []byte, size int) error {
	w.line = append(append(append(w.line[:0], itemBegin...), item...), itemEnd...)
	return w.add(size)
}

// AddChange writes a change of an incremental export.
func (w *Writer) AddChange(c Change) error {
	if w.of.Format == FormatIon {
		w.line = appendIonChange(w.line[:0], c)
	} else {
		w.line = AppendChange(w.line[:0], c)
	}
	return w.add(c.Keys.Size() + c.Old.Size() + c.New.Size())
}

// AddChangeText writes a change of an incremental export in DynamoDB JSON.
func (w *Writer) AddChangeText(c ChangeText) error {
	w.line = appendChangeText(w.line[:0], c)
	return w.add(c.Keys.Size() + c.Old.Size + c.New.Size)
}

// add writes the line.
func (w *Writer) add(size int) error {
	if w.open == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if _, err := w.open.zip.Write(w.line); err != nil {
		return err
	}
	w.open.n++
	w.bytes += int64(size)
	if w.open.size += len(w.line); w.open.size < w.of.FileBytes {
		return nil
	}
	return w.end()
}

// Items returns the number of lines in completed data files. After Finish, that is the number of
// all lines.
func (w *Writer) Items() int64 { return w.items }

// BilledBytes returns the billed size of the export, which is the size of its contents as DynamoDB
// counts it.
func (w *Writer) BilledBytes() int64 {
	if w.of.incremental() {
		return max(w.bytes, minIncrementalBytes)
	}
	return w.bytes
}

// Files returns the number of data files.
func (w *Writer) Files() int { return len(w.files) }

// begin opens the next data file.
func (w *Writer) begin() error {
	d := &dataFile{name: w.dataName(len(w.files)), sum: md5.New()} //nolint:gosec // see the import
	var err error
	if d.file, err = w.root.Create(path.Join(w.dir, DataFolder, d.name)); err != nil {
		return err
	}
	d.zip = gzip.NewWriter(io.MultiWriter(d.file, d.sum))
	w.open = d
	return nil
}

// dataName returns the name of a data file, which is unique among exports.
func (w *Writer) dataName(n int) string {
	h := extsort.HashOf([]byte(w.of.ID), fmt.Append(nil, n))
	return fmt.Sprintf("%05d-%016x.%s.gz", n, h.Hi, w.suffix())
}

// suffix returns the suffix of data files before compression.
func (w *Writer) suffix() string {
	if w.of.Format == FormatIon {
		return "ion"
	}
	return "json"
}

// end closes the data file.
func (w *Writer) end() error {
	d := w.open
	if d == nil {
		return nil
	}
	w.open = nil
	err := d.zip.Close()
	if closed := d.file.Close(); err == nil {
		err = closed
	}
	sum := d.sum.Sum(nil)
	w.files = append(w.files, File{
		ItemCount: &d.n, MD5Checksum: Checksum(sum), ETag: hex.EncodeToString(sum), DataFileS3Key: path.Join(w.of.dataPath(), d.name),
	})
	w.items += d.n
	return err
}

// Finish writes the manifests, with the given end time, and gives the folder its final name.
func (w *Writer) Finish(ended time.Time) error {
	if len(w.files) == 0 && w.open == nil { // an empty partition has an empty file
		if err := w.begin(); err != nil {
			return err
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	var list bytes.Buffer
	for _, f := range w.files {
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		list.Write(append(line, '\n'))
	}
	summary, err := json.Marshal(w.summary(ended))
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{StartedName, nil}, {FilesName, list.Bytes()}, {SummaryName, append(summary, '\n')}} {
		if f.name != StartedName {
			if err := w.put(ChecksumNames(f.name)[0], []byte(ChecksumOf(f.text))); err != nil {
				return err
			}
		}
		if err := w.put(f.name, f.text); err != nil {
			return err
		}
	}
	if err := w.share(); err != nil {
		return err
	}
	return w.root.Rename(w.dir, w.of.Path())
}

// share moves the data files of an incremental export to the shared folder, in their order.
func (w *Writer) share() error {
	if !w.of.incremental() {
		return nil
	}
	if err := w.root.MkdirAll(w.of.dataPath(), 0o777); err != nil {
		return err
	}
	for _, f := range w.files {
		if err := w.root.Rename(path.Join(w.dir, DataFolder, path.Base(f.DataFileS3Key)), f.DataFileS3Key); err != nil {
			return err
		}
	}
	return w.root.Remove(path.Join(w.dir, DataFolder))
}

// unshare removes the shared data files of an unfinished export.
func (w *Writer) unshare() error {
	if !w.of.incremental() {
		return nil
	}
	for n := 0; ; n++ {
		err := w.root.Remove(path.Join(w.of.dataPath(), w.dataName(n)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// summary returns the content of manifest-summary.json.
func (w *Writer) summary(ended time.Time) Summary {
	e := w.of
	s := Summary{
		Version: VersionFull, ExportArn: e.TableArn + "/export/" + e.ID, StartTime: Stamp(e.Started), EndTime: Stamp(ended), TableArn: e.TableArn, TableID: e.TableID,
		S3Bucket: e.Bucket, S3SseAlgorithm: e.SSEAlgorithm, ManifestFilesS3Key: path.Join(e.Path(), FilesName), BilledSizeBytes: w.BilledBytes(), ItemCount: &w.items,
		OutputFormat: e.Format, ExportType: TypeFull,
	}
	if e.Prefix != "" {
		s.S3Prefix = &e.Prefix
	}
	if e.KMSKeyID != "" {
		s.S3SseKmsKeyID = &e.KMSKeyID
	}
	if e.incremental() {
		s.Version, s.ExportType, s.OutputView = VersionIncremental, TypeIncremental, e.View
		s.ExportFromTime, s.ExportToTime = Stamp(e.From), Stamp(e.Time)
	} else {
		s.ExportTime = Stamp(e.Time)
	}
	return s
}

// put writes a file of the export's folder.
func (w *Writer) put(name string, text []byte) error {
	return w.root.WriteFile(path.Join(w.dir, name), text, 0o666)
}

// Abandon removes the written files. After Finish it does nothing.
func (w *Writer) Abandon() {
	if w.open != nil {
		_ = w.open.file.Close() // the earlier error is the one to report
		w.open = nil
	}
	_ = w.root.RemoveAll(w.dir)
	if _, err := w.root.Stat(w.of.Path()); err != nil && w.of.incremental() {
		_ = w.unshare()
		_ = w.root.Remove(w.of.dataPath()) // fails if another export has files there
	}
	for folder := path.Dir(w.dir); folder != "."; folder = path.Dir(folder) {
		if w.root.Remove(folder) != nil { // other files are there
			return
		}
	}
}
