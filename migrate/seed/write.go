package seed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// mark is the file of a folder that Write made, and may replace.
const mark = ".tabletop-export"

const markText = "tabletop serve --export-on-exit wrote this folder, and replaces it.\n"

// CheckTarget returns an error unless Write can create or replace a folder. It refuses a folder
// with other files, which would be lost.
func CheckTarget(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, mark)); err != nil {
			return fmt.Errorf("%s has files of another origin, which would be lost: name an empty or a new folder", dir)
		}
	}
	partial, _, err := begin(dir)
	if err != nil {
		return err
	}
	return os.RemoveAll(partial)
}

// begin creates a folder beside dir, and returns it with the absolute path of dir.
func begin(dir string) (partial, whole string, err error) {
	if whole, err = filepath.Abs(dir); err == nil {
		partial, err = os.MkdirTemp(filepath.Dir(whole), partialPrefix(whole))
	}
	return partial, whole, err
}

// partialPrefix begins the names of incomplete folders.
func partialPrefix(whole string) string { return "." + filepath.Base(whole) + ".partial-" }

// Write writes all tables of an endpoint to a folder that Open reads. For each table it has a
// folder with an export to S3 and, in schema.json, its description. The folder appears
// completely or not at all, and replaces one that an earlier call wrote. now is the time of the
// export. It returns the number of tables.
func Write(ctx context.Context, e Endpoint, dir string, now time.Time) (tables int, err error) {
	if err := CheckTarget(dir); err != nil {
		return 0, err
	}
	partial, dir, err := begin(dir)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if err := os.Chmod(partial, 0o755); err != nil { //nolint:gosec // as other folders; temporary ones are private
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(partial, mark), []byte(markText), 0o644); err != nil { //nolint:gosec // as above
		return 0, err
	}
	for start := ""; ; {
		request := map[string]string{}
		if start != "" {
			request["ExclusiveStartTableName"] = start
		}
		var page struct {
			TableNames             []string
			LastEvaluatedTableName string
		}
		if err := call(ctx, e, "ListTables", request, &page); err != nil {
			return 0, err
		}
		for _, name := range page.TableNames {
			if err := writeTable(ctx, e, partial, name, now); err != nil {
				return 0, fmt.Errorf("table %s: %w", name, err)
			}
			tables++
		}
		if start = page.LastEvaluatedTableName; start == "" {
			return tables, replaceFolder(dir, partial)
		}
	}
}

// replaceFolder gives a complete folder its name, and removes the one before it and the remains
// of killed processes.
func replaceFolder(dir, complete string) error {
	before := complete + ".before"
	err := os.Rename(dir, before)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	replaced := err == nil
	if err := os.Rename(complete, dir); err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(before, dir))
		}
		return err
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partialPrefix(dir)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(filepath.Dir(dir), e.Name())))
		}
	}
	return err
}

// folderOf returns the folder name of a table. Names that would be hidden begin with "=", which
// no table name has.
func folderOf(table string) string {
	if strings.HasPrefix(table, ".") || strings.HasPrefix(table, "_") {
		return "=" + table
	}
	return table
}

// writeTable writes the description and the items of a table.
func writeTable(ctx context.Context, e Endpoint, dir, table string, now time.Time) error {
	folder := filepath.Join(dir, folderOf(table))
	err := os.Mkdir(folder, 0o755)
	if errors.Is(err, fs.ErrExist) { // the file system does not distinguish upper and lower case
		folder += "=2"
		err = os.Mkdir(folder, 0o755)
	}
	if err != nil {
		return err
	}
	name := map[string]string{"TableName": table}
	var described jsontext.Value
	if err := call(ctx, e, "DescribeTable", name, &described); err != nil {
		return err
	}
	var expiry jsontext.Value
	if err := call(ctx, e, "DescribeTimeToLive", name, &expiry); err != nil {
		return err
	}
	var ids struct {
		Table struct {
			TableArn string
			TableID  string `json:"TableId"`
		}
	}
	if err := json.Unmarshal(described, &ids); err != nil {
		return err
	}
	if err := errors.Join(described.Indent(), expiry.Indent()); err != nil {
		return err
	}
	text := fmt.Appendf(nil, "%s\n%s\n", described, expiry)
	if err := os.WriteFile(filepath.Join(folder, schemaName), text, 0o644); err != nil { //nolint:gosec // as above
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is written through it by then
	w, err := s3export.Create(root, s3export.Export{ID: s3export.NewID(now, 0), TableArn: ids.Table.TableArn, TableID: ids.Table.TableID, Time: now})
	if err != nil {
		return err
	}
	if err := writeItems(ctx, e, w, table); err != nil {
		w.Abandon()
		return err
	}
	return w.Finish(now)
}

// writeItems writes all items of a table to its export.
func writeItems(ctx context.Context, e Endpoint, w *s3export.Writer, table string) error {
	for start := jsontext.Value(nil); ; {
		request := map[string]any{"TableName": table, "ConsistentRead": true}
		if start != nil {
			request["ExclusiveStartKey"] = start
		}
		var page struct {
			Items            []jsontext.Value
			LastEvaluatedKey jsontext.Value
		}
		if err := call(ctx, e, "Scan", request, &page); err != nil {
			return err
		}
		for _, text := range page.Items {
			item, err := attr.UnmarshalItem(text)
			if err != nil {
				return err
			}
			if err := w.Add(item); err != nil {
				return err
			}
		}
		if start = page.LastEvaluatedKey; start == nil {
			return nil
		}
	}
}
