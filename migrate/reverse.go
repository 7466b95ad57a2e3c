package migrate

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the checksum that the export format uses
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/gzip"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/run"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The size of a data file that Reverse writes, as text: imports read files side
// by side.
const maxReverseFileBytes = 128 << 20

// reverseAccount stands in the ARNs of what Reverse writes, where the table's
// own account is not known.
const reverseAccount = "arn:aws:dynamodb:us-east-1:000000000000:table/"

// ReverseOptions configure Reverse.
type ReverseOptions struct {
	run.Options
	// ExportTime is the moment that the export is said to be of. Cells without a
	// time of their own are loaded back at it. Default: that at which the load
	// wrote them, as _migration_schema tells; without such a note it is an error.
	ExportTime time.Time
	fileBytes  int // maxReverseFileBytes but in tests
}

// Reversed is what Reverse wrote.
type Reversed struct {
	Dir   string // the folder of the export
	Items int64
	Rows  int64
	Files int
	// Warnings are what a reader should know: that the table was loaded by another
	// mapping, as _migration_schema tells.
	Warnings []string
}

// String says where the export is, and what it holds.
func (r *Reversed) String() string {
	return fmt.Sprintf("%s: %s of %s in %s", r.Dir, phrase.Counted(r.Items, "item"), phrase.Counted(r.Rows, "row"), phrase.Counted(int64(r.Files), "file"))
}

// Reverse writes the rows of a mapping's table as an export to S3: a folder of
// manifests and of gzip data files in DynamoDB JSON below dir, as DynamoDB
// itself writes it, that can be imported from S3 and opened as a [Source]. The
// rows become items by the mapping, of which [StoredMappings] has those of earlier
// loads; one that cannot is an error. The folder appears when it is whole.
func Reverse(ctx context.Context, conn grpc.ClientConnInterface, by *mapping.Mapping, dir string, o ReverseOptions) (*Reversed, error) {
	m := (*layout.Mapping)(by)
	o.Options = o.Normalized()
	if o.fileBytes == 0 {
		o.fileBytes = maxReverseFileBytes
	}
	b := run.NewBigtable(conn, o.Options)
	noted, err := b.SchemaOf(ctx, m.TargetTable())
	if err != nil {
		return nil, err
	}
	if o.ExportTime.IsZero() {
		if o.ExportTime = run.LoadedAt(noted, m.TargetTable()); o.ExportTime.IsZero() {
			return nil, source.Damaged(source.FixtureInvalid, source.Position{File: dir}, nil, "an export needs the time that it is of, and %s does not tell when table %s was loaded", layout.SchemaTable, m.TargetTable())
		}
	}
	sum := extsort.HashOf([]byte(m.SourceTable()), []byte(m.TargetTable()))
	id := fmt.Sprintf("%014d-%08x", o.ExportTime.UnixMilli(), uint32(sum.Hi))
	w := &exportWriter{
		dir: filepath.Join(dir, source.ExportFolder, "."+id), key: path.Join(source.ExportFolder, id), table: m.SourceTable(), id: id, at: o.ExportTime, most: o.fileBytes,
	}
	whole := filepath.Join(dir, source.ExportFolder, id)
	if _, err := os.Stat(whole); err == nil {
		return nil, source.Damaged(source.FixtureInvalid, source.Position{File: whole}, nil, "an export of this table and time is there already: give another folder or another time")
	}
	if err := os.RemoveAll(w.dir); err != nil { // of a run that was killed
		return nil, fmt.Errorf("making the folder of an export: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(w.dir, source.DataFolder), 0o777); err != nil {
		return nil, fmt.Errorf("making the folder of an export: %w", err)
	}
	defer w.abandon()
	r := &Reversed{Dir: whole}
	for _, change := range run.LoadedBy(noted, m) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("table %s was loaded by another mapping: %s", m.TargetTable(), change))
	}
	for row, err := range b.Groups(ctx, m.TargetTable(), o.Options, run.ByItem(m), run.Retention{}) {
		if err != nil {
			return nil, err
		}
		if !row.GoesOn {
			r.Rows++
		}
		items, err := m.Items(row.Row)
		if err != nil {
			return nil, source.Damaged(source.MappingRefused, source.Position{File: m.TargetTable()}, err, "row %q cannot be read by the mapping", row.Key)
		}
		for _, item := range items {
			if err := w.add(item); err != nil {
				return nil, fmt.Errorf("writing an export: %w", err)
			}
			if r.Items++; r.Items%256 == 0 {
				o.Progress(source.Progress{Table: m.TargetTable(), Phase: "reversing", Items: r.Items, Total: -1})
			}
		}
	}
	o.Progress(source.Progress{Table: m.TargetTable(), Phase: "reversing", Items: r.Items, Total: r.Items})
	if err := w.finish(); err != nil {
		return nil, fmt.Errorf("writing an export: %w", err)
	}
	if err := os.Rename(w.dir, whole); err != nil {
		return nil, fmt.Errorf("writing an export: %w", err)
	}
	r.Files = len(w.files)
	return r, nil
}

// exportWriter writes the files of an export.
type exportWriter struct {
	dir, key, table, id string
	at                  time.Time
	most                int

	files []writtenFile
	items int64
	bytes int64
	file  *os.File // open; nil for none
	name  string
	sum   hash.Hash
	zip   *gzip.Writer
	count int64
	size  int
	line  []byte
}

type writtenFile struct {
	ItemCount     int64  `json:"itemCount"`
	MD5Checksum   string `json:"md5Checksum"`
	ETag          string `json:"etag"`
	DataFileS3Key string `json:"dataFileS3Key"`
}

// add writes one item.
func (w *exportWriter) add(item attr.Item) error {
	if w.file == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.line = append(attr.AppendItemJSON(append(w.line[:0], `{"Item":`...), item), "}\n"...)
	if _, err := w.zip.Write(w.line); err != nil {
		return err
	}
	w.count++
	w.bytes += int64(item.Size())
	if w.size += len(w.line); w.size < w.most {
		return nil
	}
	return w.end()
}

// begin opens the next data file.
func (w *exportWriter) begin() (err error) {
	h := extsort.HashOf([]byte(w.id), fmt.Append(nil, len(w.files)))
	w.name = fmt.Sprintf("%05d-%016x.json.gz", len(w.files), h.Hi)
	if w.file, err = os.Create(filepath.Join(w.dir, source.DataFolder, w.name)); err != nil {
		return err
	}
	w.sum = md5.New() //nolint:gosec // see the import
	w.zip = gzip.NewWriter(io.MultiWriter(w.file, w.sum))
	w.count, w.size = 0, 0
	return nil
}

// end closes the data file.
func (w *exportWriter) end() error {
	if w.file == nil {
		return nil
	}
	err := w.zip.Close()
	if closed := w.file.Close(); err == nil {
		err = closed
	}
	w.file = nil
	sum := w.sum.Sum(nil)
	w.files = append(w.files, writtenFile{w.count, base64.StdEncoding.EncodeToString(sum), hex.EncodeToString(sum), path.Join(w.key, source.DataFolder, w.name)})
	w.items += w.count
	return err
}

// finish writes the manifests; without them the folder is no export.
func (w *exportWriter) finish() error {
	if len(w.files) == 0 && w.file == nil { // an empty partition has an empty file
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
	moment := source.Stamp(w.at)
	summary, err := json.Marshal(struct {
		Version            string `json:"version"`
		ExportArn          string `json:"exportArn"`
		StartTime          string `json:"startTime"`
		EndTime            string `json:"endTime"`
		TableArn           string `json:"tableArn"`
		ExportTime         string `json:"exportTime"`
		S3Prefix           any    `json:"s3Prefix"`
		ManifestFilesS3Key string `json:"manifestFilesS3Key"`
		BilledSizeBytes    int64  `json:"billedSizeBytes"`
		ItemCount          int64  `json:"itemCount"`
		OutputFormat       string `json:"outputFormat"`
		ExportType         string `json:"exportType"`
	}{
		"2020-06-30", reverseAccount + w.table + "/export/" + w.id, moment, moment, reverseAccount + w.table, moment,
		nil, path.Join(w.key, source.FilesName), w.bytes, w.items, "DYNAMODB_JSON", "FULL_EXPORT",
	})
	if err != nil {
		return err
	}
	if err := run.WriteWhole(filepath.Join(w.dir, source.StartedName), nil); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{source.FilesName, list.Bytes()}, {source.SummaryName, append(summary, '\n')}} {
		sum := md5.Sum(f.text) //nolint:gosec // see the import
		checksum := f.name[:len(f.name)-len(".json")] + ".md5"
		if err := run.WriteWhole(filepath.Join(w.dir, checksum), []byte(base64.StdEncoding.EncodeToString(sum[:]))); err != nil {
			return err
		}
		if err := run.WriteWhole(filepath.Join(w.dir, f.name), f.text); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes what an error left, and nothing of an export that is whole.
func (w *exportWriter) abandon() {
	if w.file != nil {
		_ = w.file.Close() // the error that came before it is the one to tell
	}
	_ = os.RemoveAll(w.dir)
	_ = os.Remove(filepath.Dir(w.dir)) // if nothing else is there
}
