package bucketjobs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/importfile"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
)

const (
	// putItems and putBytes limit the items that are put at once; Options.BatchBytes replaces
	// putBytes.
	putItems = 256
	putBytes = 4 << 20

	// saveEvery is the number of items between two saves of an import's progress.
	saveEvery = 20_000

	// logFolder has the logs of imports; the name is invalid for buckets.
	logFolder = ".tabletop/imports"
)

// importRun is one run of an import.
type importRun struct {
	s     *Service
	claim *jobs.Claim
	job   importJob
	id    string // as in the ARN
	table *tabledef.Table
	importProgress

	batch  []attr.Item
	places []place         // of the items in batch
	keys   map[string]bool // of the items in batch
	size   int
	saved  int64
	log    *bufio.Writer
	logged int64
}

// place is the position of an item: the file, and its number in it, from 0.
type place struct {
	key   string
	index int64
}

// runImport creates the table and puts the items of all files into it. A repeated run starts
// over, until the result is saved: from then on clients may write into the table.
func (s *Service) runImport(ctx context.Context, c *jobs.Claim) error {
	j := c.Job()
	r := &importRun{s: s, claim: c, id: rowID(j.ID), keys: map[string]bool{}}
	var before importProgress
	if err := readJob(&j, &r.job, &before); err != nil {
		return &jobs.Failure{Code: jobs.CodeInternal, Message: err.Error()}
	}
	if before.Whole {
		r.importProgress = before
	} else if err := r.all(ctx); err != nil {
		return err
	}
	if err := r.activate(ctx, j.Created.Add(s.o.Delay)); err != nil {
		return err
	}
	if r.Errors > 0 {
		return &jobs.Failure{Code: awserr.FailureItems, Message: awserr.MsgImportItems}
	}
	return nil
}

// all creates the table, puts all items into it, and saves the result.
func (r *importRun) all(ctx context.Context) error {
	from := r.job.Request.S3BucketSource
	bucket, err := r.s.bucket(*from.S3Bucket, from.S3BucketOwner)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }() // only read
	if err := r.create(ctx); err != nil {
		return err
	}
	err = r.files(ctx, bucket)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if r.claim.LastAttempt() { // the table exists, with the items that could be imported
			err = errors.Join(err, r.activate(ctx, r.claim.Job().Created))
		}
		return err
	}
	r.Whole = true
	return r.claim.Save(ctx, r.importProgress)
}

// activate makes the table ACTIVE at a given time, unless it is ACTIVE or deleted.
func (r *importRun) activate(ctx context.Context, at time.Time) error {
	t, err := r.s.o.Store.TableNow(ctx, r.job.Table)
	if err == nil && t.ID == r.job.Def.ID && t.Status == tabledef.StatusCreating {
		err = r.s.o.Store.EndCreating(ctx, t.Name, at)
	}
	if errors.Is(err, store.ErrTableNotFound) {
		return nil
	}
	return err
}

// create creates the table, unless an earlier run has.
func (r *importRun) create(ctx context.Context) (err error) {
	r.table, err = r.s.createTable(ctx, r.job.Def)
	if errors.Is(err, store.ErrTableExists) {
		there, found := r.s.o.Store.TableNow(ctx, r.job.Table)
		if found == nil && there.ID == r.job.Def.ID {
			r.table = there
			return nil
		}
		return &jobs.Failure{Code: awserr.FailureTableExists, Message: fmt.Sprintf(awserr.MsgTableExists, r.job.Table)}
	}
	return err
}

// files imports all files of the prefix, with a log of rejected items.
func (r *importRun) files(ctx context.Context, bucket *os.Root) (err error) {
	if err := r.s.o.Buckets.MkdirAll(logFolder, 0o777); err != nil {
		return fmt.Errorf("creating the folder for logs of imports: %w", err)
	}
	log, err := r.s.o.Buckets.Create(path.Join(logFolder, r.id+".log"))
	if err != nil {
		return fmt.Errorf("creating the log of an import: %w", err)
	}
	r.log = bufio.NewWriter(log)
	defer func() { err = errors.Join(err, r.log.Flush(), log.Close()) }()
	prefix := ""
	if p := r.job.Request.S3BucketSource.S3KeyPrefix; p != nil {
		prefix = *p
	}
	for key, err := range objects(bucket, prefix) {
		if err == nil {
			err = r.file(ctx, bucket, key)
		}
		if err != nil {
			return err
		}
	}
	return r.put(ctx)
}

// objects yields the files of a bucket whose names begin with a prefix. It skips names with a
// leading dot, and folders with such names: unfinished exports have them.
func objects(bucket *os.Root, prefix string) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		start := path.Dir(prefix + "x") // "." if the prefix has no folder
		if !fs.ValidPath(start) {
			return // no file has such a name
		}
		err := fs.WalkDir(bucket.FS(), start, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case name != "." && strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			case !d.Type().IsRegular() || !strings.HasPrefix(name, prefix):
				return nil
			}
			if !yield(name, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield("", fmt.Errorf("listing the objects of bucket %s: %w", filepath.Base(bucket.Name()), err))
		}
	}
}

// file imports the items of a file.
func (r *importRun) file(ctx context.Context, bucket *os.Root, key string) error {
	f, err := bucket.Open(key)
	if err != nil {
		return r.refuse(place{key, 0}, err)
	}
	defer func() { _ = f.Close() }() // only read
	in := r.job.Request
	o := importfile.Options{Format: *in.InputFormat, Compression: importfile.None, Delimiter: ',', Types: map[string]attr.Type{}}
	if c := in.InputCompressionType; c != nil {
		o.Compression = *c
	}
	if csv := in.csv(); csv != nil {
		if o.Header = csv.HeaderList; csv.Delimiter != nil {
			o.Delimiter = (*csv.Delimiter)[0]
		}
	}
	for _, a := range r.table.Attributes {
		o.Types[a.Name] = a.Type
	}
	items, err := importfile.Open(f, o)
	if err != nil {
		r.Processed++
		return r.refuse(place{key, 0}, err)
	}
	defer items.Close()
	before := r.Bytes
	for n := int64(0); ; n++ {
		item, err := items.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Processed++
		r.Bytes = before + items.Bytes()
		if err == nil {
			err = r.add(ctx, item, place{key, n})
		} else {
			_, goesOn := errors.AsType[*importfile.ItemError](err)
			if err := r.refuse(place{key, n}, err); err != nil || !goesOn {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
	}
}

// add adds an item to the batch, or refuses it.
func (r *importRun) add(ctx context.Context, item attr.Item, at place) error {
	err := tablespec.CheckItem(r.table, item)
	if size := item.Size(); err == nil && size > tablespec.MaxItemBytes {
		err = fmt.Errorf("the item has %d bytes, more than %d", size, tablespec.MaxItemBytes)
	}
	if err != nil {
		return r.refuse(at, err)
	}
	key := string(r.table.Key.AppendKey(nil, item))
	if r.keys[key] || len(r.batch) == putItems || r.size >= cmp.Or(r.s.o.BatchBytes, putBytes) {
		if err := r.put(ctx); err != nil {
			return err
		}
	}
	r.keys[key] = true
	r.batch, r.places = append(r.batch, item), append(r.places, at)
	r.size += item.Size()
	return nil
}

// put puts the items of the batch.
func (r *importRun) put(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	refused, err := r.s.put(ctx, r.table, r.batch, func(ctx context.Context) error { return r.claim.Pause(ctx, heldPause) })
	if err != nil {
		return err
	}
	for i, err := range refused {
		if err == nil {
			r.Imported++
			continue
		}
		if err := r.refuse(r.places[i], err); err != nil {
			return err
		}
	}
	clear(r.keys)
	clear(r.batch)
	r.batch, r.places, r.size = r.batch[:0], r.places[:0], 0
	if r.Processed < r.saved+saveEvery {
		return nil
	}
	r.saved = r.Processed
	return r.claim.Save(ctx, r.importProgress)
}

// refusedItem is a line in the log of an import.
type refusedItem struct {
	ItemS3Pointer struct {
		Bucket    string `json:"bucket"`
		Key       string `json:"key"`
		ItemIndex int64  `json:"itemIndex"`
	} `json:"itemS3Pointer"`
	ImportARN     string   `json:"importArn"`
	ErrorMessages []string `json:"errorMessages"`
}

// refuse counts an item that cannot be imported, and logs it unless the log is full.
func (r *importRun) refuse(at place, cause error) error {
	r.Errors++
	if r.logged++; r.logged > maxLogged {
		return nil
	}
	line := refusedItem{ImportARN: r.job.TableARN + "/" + kindImport + "/" + r.id, ErrorMessages: []string{cause.Error()}}
	line.ItemS3Pointer.Bucket, line.ItemS3Pointer.Key, line.ItemS3Pointer.ItemIndex = *r.job.Request.S3BucketSource.S3Bucket, at.key, at.index
	if r.logged == maxLogged {
		line.ErrorMessages = append(line.ErrorMessages, "further items are counted, but not logged")
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = r.log.Write(append(text, '\n'))
	return err
}
