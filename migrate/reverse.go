package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/s3export"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// reverseAccount is the ARN prefix in exports of Reverse if the table's own account is unknown.
const reverseAccount = "arn:aws:dynamodb:us-east-1:000000000000:table/"

// Reversed describes an export that Reverse wrote.
type Reversed struct {
	Dir   string // folder of the export
	Items int64  // number of items written
	Rows  int64  // number of rows read
	Files int    // number of data files
	// Unreadable is the number of rows that the mapping cannot read, and that
	// ReverseOptions.Partial left out.
	Unreadable int64
	// Warnings lists facts that the user should know: another mapping in
	// _migration_schema, rows that no rule takes, unreadable rows, and NotLaidOut.
	Warnings []string
	// NotLaidOut lists the parts of the DynamoDB table that the mapping does not lay out.
	// Add them to the table after you import the export.
	NotLaidOut []report.NotLaidOut
}

// String describes the location and contents of the export.
func (r *Reversed) String() string {
	return fmt.Sprintf("%s: %s of %s in %s", r.Dir, phrase.Counted(r.Items, "item"), phrase.Counted(r.Rows, "row"), phrase.Counted(int64(r.Files), "file"))
}

// Reverse writes the rows of a mapping's table as an export to S3: a folder below dir
// with manifests and gzip data files in DynamoDB JSON. The export has the format that
// DynamoDB writes. It can be imported from S3 and opened as a [source.Source]. The
// mapping converts the rows to items; [StoredMappings] returns the mappings of earlier
// loads. If the mapping cannot read some rows, Reverse returns an error that counts them
// and names the first ten, unless o.Partial is set. The folder appears only when the
// export is complete.
func Reverse(ctx context.Context, conn grpc.ClientConnInterface, by *mapping.Mapping, dir string, o ReverseOptions) (*Reversed, error) {
	m := (*layout.Mapping)(by)
	options := o.options().Normalized()
	b := table.NewBigtable(conn, options)
	noted, err := b.SchemaOf(ctx, m.TargetTable())
	if err != nil {
		return nil, err
	}
	if o.ExportTime.IsZero() {
		if o.ExportTime = loadnote.At(noted, m.TargetTable()); o.ExportTime.IsZero() {
			return nil, source.Damaged(source.LoadTimeUnknown, source.Position{File: dir}, nil, "the time of the export is unknown: %s does not have the load time of table %s", layout.SchemaTable, m.TargetTable())
		}
	}
	sum := extsort.HashOf([]byte(m.SourceTable()), []byte(m.TargetTable()))
	export := s3export.Export{ID: s3export.NewID(o.ExportTime, uint32(sum.Hi)), TableArn: reverseAccount + m.SourceTable(), Time: o.ExportTime, FileBytes: o.fileBytes}
	whole := filepath.Join(dir, filepath.FromSlash(export.Path()))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("creating the folder of an export: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("creating the folder of an export: %w", err)
	}
	defer func() { _ = root.Close() }() // it is no longer used for writing
	w, err := s3export.Create(root, export)
	if errors.Is(err, fs.ErrExist) {
		return nil, source.Damaged(source.TargetExists, source.Position{File: whole}, nil, "an export of this table and time already exists: choose another folder or another time")
	}
	if err != nil {
		return nil, fmt.Errorf("creating the folder of an export in %s: %w", dir, err)
	}
	defer w.Abandon()
	r := &Reversed{Dir: whole, NotLaidOut: table.LeftOut(m, nil)}
	for _, n := range r.NotLaidOut {
		r.Warnings = append(r.Warnings, n.String())
	}
	for _, change := range loadnote.Changes(noted, m) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("table %s was loaded with another mapping: %s", m.TargetTable(), change))
	}
	unread, left := unreadRows{}, leftRows{}
	for row, err := range compare.Groups(ctx, b, m.TargetTable(), options, compare.ByItem(m), table.Retention{}) {
		if err != nil {
			return nil, err
		}
		items, err := m.Items(row.Row)
		if left.group(row.Row, len(items) > 0 || err != nil); !row.GoesOn {
			if left.end() {
				r.Rows++
			}
		}
		if err != nil {
			unread.add(row.Key, err) // continue, to report all of them in one run
		}
		for _, item := range items {
			if err := w.Add(item); err != nil {
				return nil, fmt.Errorf("writing an export in %s: %w", dir, err)
			}
			if r.Items++; r.Items%256 == 0 {
				options.Progress(source.Progress{Table: m.TargetTable(), Phase: "reversing", Items: r.Items, Total: -1})
			}
		}
	}
	if r.Unreadable = unread.rows; r.Unreadable > 0 {
		refused := unread.refusal(m.TargetTable())
		if !o.Partial {
			return nil, refused
		}
		r.Rows -= r.Unreadable
		r.Warnings = append(r.Warnings, fmt.Sprintf("left out: %v", refused))
	}
	if left.rows > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("table %s: left out %s that match no rule of the mapping, e.g. %q", m.TargetTable(), phrase.Counted(left.rows, "row"), left.example))
	}
	options.Progress(source.Progress{Table: m.TargetTable(), Phase: "reversing", Items: r.Items, Total: r.Items})
	if err := w.Finish(o.ExportTime); err != nil {
		return nil, fmt.Errorf("writing an export in %s: %w", dir, err)
	}
	r.Files = w.Files()
	return r, nil
}

// maxUnreadRows bounds the unreadable rows that are named.
const maxUnreadRows = 10

// unreadRows are rows that the mapping cannot read.
type unreadRows struct {
	rows  int64
	named []error
	key   []byte // of the last row
}

// add adds a row, or another part of the last one.
func (u *unreadRows) add(key []byte, err error) {
	if u.rows > 0 && bytes.Equal(key, u.key) {
		return
	}
	u.key = bytes.Clone(key)
	if u.rows++; u.rows <= maxUnreadRows {
		u.named = append(u.named, fmt.Errorf("row %q: %w", key, err))
	}
}

// refusal returns an error that counts and names the rows.
func (u *unreadRows) refusal(table string) error {
	named := ""
	if more := u.rows - int64(len(u.named)); more > 0 {
		named = fmt.Sprintf(", the first %d", len(u.named))
	}
	return source.Damaged(source.MappingRefused, source.Position{File: table}, errors.Join(u.named...), "%s that the mapping cannot read%s", phrase.Counted(u.rows, "row"), named)
}

// leftRows counts rows that no rule takes, except for bookkeeping about deleted items.
type leftRows struct {
	rows    int64
	example []byte // key of the first one
	taken   bool   // the current row has an item
	foreign bool   // the current row has cells other than bookkeeping
	key     []byte
}

// group adds a row, or a part of one.
func (l *leftRows) group(row layout.Row, taken bool) {
	l.taken = l.taken || taken
	l.key = row.Key
	for _, c := range row.Cells {
		l.foreign = l.foreign || !lens.Bookkeeping(c.Family)
	}
}

// end ends the current row, and reports whether it has items.
func (l *leftRows) end() (taken bool) {
	if taken = l.taken; !taken && l.foreign {
		if l.rows++; l.example == nil {
			l.example = bytes.Clone(l.key)
		}
	}
	l.taken, l.foreign = false, false
	return taken
}
