package s3export

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the checksum that the format uses
	"encoding/hex"
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
)

// DataFileBytes is the size of a data file, as text, where no other is asked for:
// imports read files side by side.
const DataFileBytes = 128 << 20

// Export says what a Writer writes.
type Export struct {
	ID        string // names the folder; see NewID
	TableArn  string
	Time      time.Time // that the items are of
	FileBytes int       // of a data file, as text. Default: DataFileBytes
}

// NewID is the id of an export of a time; salt tells those of one time apart.
func NewID(t time.Time, salt uint32) string { return fmt.Sprintf("%014d-%08x", t.UnixMilli(), salt) }

// Path is the folder of the export below the root of its bucket.
func (e Export) Path() string { return path.Join(Folder, e.ID) }

// Writer writes a full export in DynamoDB JSON, as gzip data files. Its folder has
// another name, that of something hidden, until Finish.
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

// dataFile is a data file that is being written.
type dataFile struct {
	name string
	file *os.File
	sum  hash.Hash
	zip  *gzip.Writer
	n    int64
	size int // as text
}

// Create begins an export below root, which stands for a bucket. What a run that was
// killed left of the same export is removed. Errors: fs.ErrExist where the export is
// there already; those of the file system. The caller ends with Finish or Abandon.
func Create(root *os.Root, e Export) (*Writer, error) {
	if e.FileBytes == 0 {
		e.FileBytes = DataFileBytes
	}
	if _, err := root.Stat(e.Path()); err == nil {
		return nil, &fs.PathError{Op: "create", Path: e.Path(), Err: fs.ErrExist}
	}
	w := &Writer{root: root, dir: path.Join(Folder, "."+e.ID), of: e}
	if err := root.RemoveAll(w.dir); err != nil {
		return nil, err
	}
	return w, root.MkdirAll(path.Join(w.dir, DataFolder), 0o777)
}

// Add writes one item.
func (w *Writer) Add(item attr.Item) error {
	if w.open == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.line = AppendItem(w.line[:0], item)
	if _, err := w.open.zip.Write(w.line); err != nil {
		return err
	}
	w.open.n++
	w.bytes += int64(item.Size())
	if w.open.size += len(w.line); w.open.size < w.of.FileBytes {
		return nil
	}
	return w.end()
}

// Files is how many data files there are.
func (w *Writer) Files() int { return len(w.files) }

// begin opens the next data file.
func (w *Writer) begin() error {
	h := extsort.HashOf([]byte(w.of.ID), fmt.Append(nil, len(w.files)))
	d := &dataFile{name: fmt.Sprintf("%05d-%016x.json.gz", len(w.files), h.Hi), sum: md5.New()} //nolint:gosec // see the import
	var err error
	if d.file, err = w.root.Create(path.Join(w.dir, DataFolder, d.name)); err != nil {
		return err
	}
	d.zip = gzip.NewWriter(io.MultiWriter(d.file, d.sum))
	w.open = d
	return nil
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
		ItemCount: &d.n, MD5Checksum: Checksum(sum), ETag: hex.EncodeToString(sum), DataFileS3Key: path.Join(w.of.Path(), DataFolder, d.name),
	})
	w.items += d.n
	return err
}

// Finish writes the manifests and gives the folder its name.
func (w *Writer) Finish() error {
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
	moment := Stamp(w.of.Time)
	summary, err := json.Marshal(Summary{
		Version: VersionFull, ExportArn: w.of.TableArn + "/export/" + w.of.ID, StartTime: moment, EndTime: moment, TableArn: w.of.TableArn, ExportTime: moment,
		ManifestFilesS3Key: path.Join(w.of.Path(), FilesName), BilledSizeBytes: w.bytes, ItemCount: &w.items, OutputFormat: FormatDynamoDBJSON, ExportType: TypeFull,
	})
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
	return w.root.Rename(w.dir, w.of.Path())
}

// put writes a file of the export's folder.
func (w *Writer) put(name string, text []byte) error {
	return w.root.WriteFile(path.Join(w.dir, name), text, 0o666)
}

// Abandon removes what was written; after Finish it does nothing.
func (w *Writer) Abandon() {
	if w.open != nil {
		_ = w.open.file.Close() // the error that came before it is the one to tell
		w.open = nil
	}
	_ = w.root.RemoveAll(w.dir)
	_ = w.root.Remove(Folder) // if nothing else is there
}
