package bucketjobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"path"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/importfile"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// The limits of a bulk operation. Source: quotas page of the developer guide.
const (
	maxBulkObjects     = 50_000
	maxBulkObjectBytes = 5 << 30
)

// bulkCheckpoint is the number of records between two checkpoints. After a restart, the records
// since the last checkpoint are processed again.
const bulkCheckpoint = 256

// bulkRun is one attempt at a bulk operation.
type bulkRun struct {
	s      *Service
	claim  *jobs.Claim
	job    bulkJob
	arn    string
	folder string // of the reports
	table  *tabledef.Table
	bulkProgress

	// again is set while an earlier attempt may have put the records before the next
	// checkpoint. An item that equals the stored one then counts as put, whatever its
	// condition.
	again   bool
	reports map[string]*os.File
	batch   importBatch
}

// importBatch holds pending items of different keys.
type importBatch struct {
	items  []attr.Item
	places []place
	keys   map[string]bool
	size   int
}

// runBulk puts the items of all objects into the table, from the checkpoint of the last
// attempt. It writes as clients do, so that streams, indexes and point-in-time recovery include
// the items.
func (s *Service) runBulk(ctx context.Context, c *jobs.Claim) error {
	j := c.Job()
	r := &bulkRun{s: s, claim: c, reports: map[string]*os.File{}, batch: importBatch{keys: map[string]bool{}}}
	if err := readJob(&j, &r.job, &r.bulkProgress); err != nil {
		return &jobs.Failure{Code: jobs.CodeInternal, Message: err.Error()}
	}
	if r.Whole {
		return nil
	}
	r.again = r.Begun
	r.arn = s.bulkARN(&j, &r.job)
	from, to := r.job.Request.InputS3Configuration, r.job.Request.OutputS3Configuration
	bucket, err := s.bucket(*from.S3Bucket, from.S3BucketOwner)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }() // it was only read
	output, err := s.bucket(*to.S3Bucket, to.S3BucketOwner)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }() // its files are closed
	if err := r.findTable(ctx); err != nil {
		return err
	}
	if to.S3KeyPrefix != nil {
		r.folder = *to.S3KeyPrefix
	}
	r.folder = path.Join(r.folder, s3export.Folder, rowID(j.ID))
	if err := r.measure(bucket); err != nil {
		return err
	}
	err = r.openReports(output)
	if err == nil {
		err = r.objects(ctx, bucket)
	}
	if errors.Is(err, errCancelled) {
		err = nil
	}
	for _, f := range r.reports {
		err = errors.Join(err, f.Close())
	}
	if errors.Is(err, store.ErrTableNotFound) {
		return &jobs.Failure{Code: awserr.FailureTableNotFound, Message: fmt.Sprintf(awserr.MsgBulkTableGone, r.job.Table)}
	}
	if err != nil {
		return err
	}
	if err := r.manifest(output); err != nil {
		return err
	}
	r.Whole = true
	return c.Save(ctx, r.bulkProgress)
}

// errCancelled stops an operation that a client cancelled.
var errCancelled = errors.New("the operation was cancelled")

// findTable reads the current definition of the table. It fails if the table of the request was
// deleted, even if its name is in use again.
func (r *bulkRun) findTable(ctx context.Context) (err error) {
	r.table, err = r.s.o.Store.TableNow(ctx, r.job.Table)
	if err == nil && (r.table.ID != r.job.TableID || r.table.Status == tabledef.StatusDeleting) {
		err = store.ErrTableNotFound
	}
	if errors.Is(err, store.ErrTableNotFound) {
		return &jobs.Failure{Code: awserr.FailureTableNotFound, Message: fmt.Sprintf(awserr.MsgBulkTableGone, r.job.Table)}
	}
	return err
}

// isReport reports whether an object is a report of a bulk operation.
func isReport(key string) bool {
	folder := path.Dir(key)
	if name := path.Base(key); name != manifestFile && name != reportFiles[outputErrors] && name != reportFiles[outputConditions] {
		return false
	}
	return jobIDPattern().MatchString(path.Base(folder)) && path.Base(path.Dir(folder)) == s3export.Folder
}

// inputs yields the keys of the input objects. It skips the reports of all operations, since
// their buckets can also hold input (assumption).
func (r *bulkRun) inputs(bucket *os.Root) iter.Seq2[string, error] {
	prefix := ""
	if p := r.job.Request.InputS3Configuration.S3KeyPrefix; p != nil {
		prefix = *p
	}
	return func(yield func(string, error) bool) {
		for key, err := range objects(bucket, prefix) {
			if !isReport(key) && !yield(key, err) {
				return
			}
		}
	}
}

// measure sums the sizes of the input objects and checks their limits.
func (r *bulkRun) measure(bucket *os.Root) error {
	var total int64
	n := 0
	for key, err := range r.inputs(bucket) {
		if err != nil {
			return err
		}
		info, err := bucket.Stat(key)
		if err != nil {
			return fmt.Errorf("measuring the objects of a bucket: %w", err)
		}
		if n++; n > maxBulkObjects {
			return &jobs.Failure{Code: awserr.FailureItems, Message: fmt.Sprintf(awserr.MsgBulkTooMany, maxBulkObjects)}
		}
		if info.Size() > maxBulkObjectBytes {
			return &jobs.Failure{Code: awserr.FailureItems, Message: fmt.Sprintf(awserr.MsgBulkTooLarge, key, int64(maxBulkObjectBytes))}
		}
		total += info.Size()
	}
	r.TotalBytes = &total
	return nil
}

// The files in the folder of reports; reportFiles has an entry for each OutputType. The layout of
// the folder is an assumption.
const manifestFile = "manifest.json"

var reportFiles = map[string]string{outputErrors: "errors.json", outputConditions: "condition-check-failures.json"}

// openReports opens the requested reports and truncates them to their sizes at the last
// checkpoint.
func (r *bulkRun) openReports(output *os.Root) error {
	to := r.job.Request.OutputS3Configuration
	if err := output.MkdirAll(r.folder, 0o777); err != nil {
		return &jobs.Failure{Code: awserr.FailureAccessDenied, Message: fmt.Sprintf(awserr.MsgBucketRefused, err)}
	}
	r.Reports = maps.Clone(r.Reports)
	if r.Reports == nil {
		r.Reports = map[string]int64{}
	}
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(to.OutputType))) {
		f, err := output.OpenFile(path.Join(r.folder, reportFiles[kind]), os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return fmt.Errorf("opening a report: %w", err)
		}
		r.reports[kind] = f
		if err := f.Truncate(r.Reports[kind]); err != nil {
			return fmt.Errorf("opening a report: %w", err)
		}
		if _, err := f.Seek(0, io.SeekEnd); err != nil {
			return fmt.Errorf("opening a report: %w", err)
		}
	}
	return nil
}

// objects puts the items of all input objects.
func (r *bulkRun) objects(ctx context.Context, bucket *os.Root) error {
	if !r.Begun {
		r.Begun = true
		if err := r.checkpoint(ctx); err != nil {
			return err
		}
	}
	begun := r.Key // the object that the last attempt was reading
	for key, err := range r.inputs(bucket) {
		if err != nil {
			return err
		}
		if begun != "" && key != begun {
			continue
		}
		if begun = ""; key != r.Key {
			r.Key, r.Next = key, 0
		}
		if err := r.object(ctx, bucket, key); err != nil {
			return err
		}
	}
	if begun != "" {
		return &jobs.Failure{Code: awserr.FailureItems, Message: fmt.Sprintf(awserr.MsgBulkInputChanged, begun)}
	}
	return r.flush(ctx)
}

// object puts the items of one object. It skips the rest of a damaged object (assumption).
func (r *bulkRun) object(ctx context.Context, bucket *os.Root, key string) error {
	if r.Next == wholeObject {
		return nil
	}
	f, err := bucket.Open(key)
	if err != nil {
		r.Processed++
		return r.refuse(place{key, 0}, nil, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading an object of a bucket: %w", err)
	}
	in := r.job.Request.InputS3Configuration
	o := importfile.Options{Format: *in.InputFormat, Compression: importfile.None}
	if in.InputCompressionType != nil {
		o.Compression = *in.InputCompressionType
	}
	records, err := importfile.Open(f, o)
	if err != nil {
		r.Processed++
		r.ReadBytes += info.Size()
		return r.refuse(place{key, 0}, nil, err)
	}
	defer records.Close()
	for n, ended := int64(0), false; !ended; n++ {
		record, err := records.Record()
		if errors.Is(err, io.EOF) {
			break
		}
		if n < r.Next {
			continue // an earlier attempt processed it
		}
		at := place{key, n}
		r.Processed++
		if err == nil {
			if err = r.record(ctx, record, at); errors.Is(err, errCancelled) {
				r.Processed-- // it was not put
			}
		} else {
			_, goesOn := errors.AsType[*importfile.ItemError](err)
			ended = !goesOn
			err = r.refuse(at, nil, err)
		}
		if err == nil {
			if r.Next = n + 1; r.Next%bulkCheckpoint == 0 {
				err = r.checkpoint(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
	r.ReadBytes += info.Size()
	r.Next = wholeObject
	return r.checkpoint(ctx)
}

// wholeObject is the value of Next after the last record of an object.
const wholeObject = math.MaxInt64

// checkpoint puts the pending items, saves the progress and reads the table's definition again.
// It returns errCancelled if a client cancelled the operation.
func (r *bulkRun) checkpoint(ctx context.Context) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	if err := r.claim.Save(ctx, r.bulkProgress); err != nil {
		return err
	}
	r.again = false
	if err := r.checkCancelled(); err != nil {
		return err
	}
	return r.findTable(ctx)
}

// checkCancelled returns errCancelled if a client cancelled the operation.
func (r *bulkRun) checkCancelled() error {
	j := r.claim.Job()
	var now bulkJob
	if err := readJob(&j, &now, nil); err != nil {
		return err
	}
	if now.Cancelled {
		return errCancelled
	}
	return nil
}

// pause waits for other writers of an item. It returns errCancelled if a client cancelled the
// operation.
func (r *bulkRun) pause(ctx context.Context) error {
	if err := r.claim.Pause(ctx, heldPause); err != nil {
		return err
	}
	return r.checkCancelled()
}

// record puts the item of a record at once if it has a condition, and adds it to the batch
// otherwise.
func (r *bulkRun) record(ctx context.Context, record importfile.Record, at place) error {
	item := record.Item
	err := tablespec.CheckItem(r.table, item)
	if err == nil && item.Size() > tablespec.MaxItemBytes {
		err = awserr.Validation(awserr.MsgItemTooLarge)
	}
	var condition *expr.Condition
	if err == nil {
		condition, err = r.condition(record)
	}
	if err != nil {
		return r.refuse(at, item, err)
	}
	if condition != nil {
		if err := r.flush(ctx); err != nil {
			return err
		}
		return r.putIf(ctx, item, condition, at)
	}
	key := string(r.table.Key.AppendKey(nil, item))
	limit := r.s.o.BatchBytes
	if limit == 0 {
		limit = putBytes
	}
	if r.batch.keys[key] || len(r.batch.items) == putItems || r.batch.size >= limit {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	r.batch.keys[key] = true
	r.batch.items, r.batch.places = append(r.batch.items, item), append(r.batch.places, at)
	r.batch.size += item.Size()
	return nil
}

// condition parses the condition of a record, or returns nil if the record has no
// condition.
func (r *bulkRun) condition(record importfile.Record) (*expr.Condition, error) {
	switch {
	case record.Condition != nil:
	case record.Names != nil:
		return nil, awserr.Validation(awserr.MsgNamesWithoutExpr)
	case record.Values != nil:
		return nil, awserr.Validation(awserr.MsgValuesWithoutExpr)
	default:
		return nil, nil
	}
	placeholders, err := expr.NewPlaceholders(record.Names, record.Values)
	if err != nil {
		return nil, err
	}
	condition, err := expr.ParseCondition(expr.ConditionExpression, *record.Condition, placeholders)
	if err == nil {
		err = placeholders.CheckUsed()
	}
	if err == nil {
		err = tablespec.CheckPathsOutsideKeys(r.table, condition.Paths())
	}
	return condition, err
}

// errCondition reports an item whose condition does not hold.
var errCondition = errors.New("the condition does not hold")

// putIf puts an item if its condition holds.
func (r *bulkRun) putIf(ctx context.Context, item attr.Item, condition *expr.Condition, at place) error {
	var stored attr.Item
	if err := r.s.o.Store.CheckPlace(ctx, r.table, item); errors.Is(err, store.ErrOutsideMapping) {
		return r.refuse(at, item, err)
	} else if err != nil {
		return err
	}
	write := func() error {
		_, _, err := r.s.o.Store.WriteItem(ctx, r.table, r.table.Key.KeyOf(item), func(old attr.Item) (attr.Item, error) {
			if stored = old; condition.Eval(old) || r.again && attr.EqualItems(old, item) {
				return item, nil
			}
			return nil, errCondition
		}, store.Hint{})
		return err
	}
	err := write()
	for isHeld(err) {
		if err := r.pause(ctx); err != nil {
			return err
		}
		err = write()
	}
	switch {
	case store.IsRefusal(err):
		return r.refuse(at, item, err)
	case errors.Is(err, errCondition):
		return r.report(outputConditions, reportLine{Pointer: r.pointer(at), BulkOperationARN: r.arn, Item: &wire.Item{Item: item}, ExistingItem: wire.OptionalItem(stored)})
	case err != nil:
		return err
	}
	r.Usage.Add(r.table, item)
	return nil
}

// flush puts the pending items.
func (r *bulkRun) flush(ctx context.Context) error {
	b := &r.batch
	if len(b.items) == 0 {
		return nil
	}
	refused, ended := r.s.put(ctx, r.table, b.items, r.pause)
	if ended != nil && !errors.Is(ended, errCancelled) {
		return ended
	}
	for i, err := range refused {
		switch {
		case err == nil:
			r.Usage.Add(r.table, b.items[i])
		case isHeld(err):
			r.Processed-- // it was not put before a client cancelled the operation
		default:
			if err := r.refuse(b.places[i], b.items[i], err); err != nil {
				return err
			}
		}
	}
	clear(b.keys)
	clear(b.items)
	b.items, b.places, b.size = b.items[:0], b.places[:0], 0
	return ended
}

// pointer is the location of a record.
type pointer struct {
	Bucket    string `json:"bucket"`
	Key       string `json:"key"`
	ItemIndex int64  `json:"itemIndex"`
}

func (r *bulkRun) pointer(at place) pointer {
	return pointer{*r.job.Request.InputS3Configuration.S3Bucket, at.key, at.index}
}

// reportLine is a line of a report. Its form is an assumption.
type reportLine struct {
	Pointer          pointer    `json:"itemS3Pointer"`
	BulkOperationARN string     `json:"bulkOperationArn"`
	ErrorMessages    []string   `json:"errorMessages,omitempty"`
	Item             *wire.Item `json:",omitzero"`
	ExistingItem     *wire.Item `json:",omitzero"`
}

// refuse counts and reports a rejected record; item is nil if the record has none.
func (r *bulkRun) refuse(at place, item attr.Item, cause error) error {
	r.Failed++
	message := cause.Error()
	if refused, ok := awserr.As(cause); ok {
		message = refused.Message
	}
	return r.report(outputErrors, reportLine{Pointer: r.pointer(at), BulkOperationARN: r.arn, ErrorMessages: []string{message}, Item: wire.OptionalItem(item)})
}

// report writes a line to a report if the request selects that report.
func (r *bulkRun) report(kind string, line reportLine) error {
	f := r.reports[kind]
	if f == nil {
		return nil
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	n, err := f.Write(append(text, '\n'))
	r.Reports[kind] += int64(n)
	return err
}

// bulkManifest is the manifest of the reports, which is written last. Its form is an assumption.
type bulkManifest struct {
	BulkOperationARN   string   `json:"bulkOperationArn"`
	TableName          string   `json:"tableName"`
	ProcessedItemCount int64    `json:"processedItemCount"`
	FailedItemCount    int64    `json:"failedItemCount"`
	OutputFiles        []string `json:"outputFiles"`
}

func (r *bulkRun) manifest(output *os.Root) error {
	m := bulkManifest{BulkOperationARN: r.arn, TableName: r.job.Table, ProcessedItemCount: r.Processed, FailedItemCount: r.Failed, OutputFiles: []string{}}
	for _, kind := range slices.Sorted(maps.Keys(r.reports)) {
		m.OutputFiles = append(m.OutputFiles, path.Join(r.folder, reportFiles[kind]))
	}
	text, err := json.Marshal(m)
	if err == nil {
		err = output.WriteFile(path.Join(r.folder, manifestFile), text, 0o666)
	}
	if err != nil {
		return fmt.Errorf("writing the manifest of a bulk operation: %w", err)
	}
	return nil
}
