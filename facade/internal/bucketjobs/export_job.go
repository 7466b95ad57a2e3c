package bucketjobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/store/history"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// exportOf returns the writer's parameters for an export.
func exportOf(j *jobs.Job, of *exportJob) s3export.Export {
	in := of.Request
	e := s3export.Export{
		ID: rowID(j.ID), TableArn: of.TableARN, TableID: of.TableID, Bucket: *in.S3Bucket, SSEAlgorithm: sseAES, Started: j.Created,
	}
	if in.S3Prefix != nil { // keys of S3 are texts, names of files are paths
		e.Prefix = strings.TrimPrefix(path.Clean("/"+*in.S3Prefix), "/")
	}
	if in.S3SseAlgorithm != nil {
		e.SSEAlgorithm = *in.S3SseAlgorithm
	}
	if in.S3SseKmsKeyID != nil {
		e.KMSKeyID = *in.S3SseKmsKeyID
	}
	if in.ExportFormat != nil {
		e.Format = *in.ExportFormat
	}
	if p := in.IncrementalExportSpecification; p != nil {
		e.From, e.Time, e.View = p.ExportFromTime.Time(), p.ExportToTime.Time(), *p.ExportViewType
	} else {
		e.Time = in.ExportTime.Time()
	}
	return e
}

// runExport writes an export. A repeated run starts over.
func (s *Service) runExport(ctx context.Context, c *jobs.Claim) error {
	j := c.Job()
	var of exportJob
	var before exportProgress
	if err := readJob(&j, &of, &before); err != nil {
		return &jobs.Failure{Code: jobs.CodeInternal, Message: err.Error()}
	}
	v := request.NewValidator(s.o.Wording("ExportTableToPointInTime"))
	f, err := parseFilter(&v, of.Request.FilterSpecification)
	if err != nil {
		return &jobs.Failure{Code: jobs.CodeInternal, Message: err.Error()}
	}
	bucket, err := s.bucket(*of.Request.S3Bucket, of.Request.S3BucketOwner)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }() // nothing is written through it by then
	e := exportOf(&j, &of)
	w, err := s3export.Create(bucket, e)
	switch {
	case errors.Is(err, fs.ErrExist): // finished, but not recorded
		return s.finished(ctx, c, bucket, e)
	case errors.Is(err, fs.ErrPermission):
		return &jobs.Failure{Code: awserr.FailureAccessDenied, Message: fmt.Sprintf(awserr.MsgBucketRefused, err)}
	case err != nil:
		return err
	}
	defer w.Abandon()
	t, err := s.o.Store.TableNow(ctx, of.Table)
	switch {
	case errors.Is(err, store.ErrTableNotFound), err == nil && t.ID != of.TableID:
		return &jobs.Failure{Code: awserr.FailureTableNotFound, Message: fmt.Sprintf(awserr.MsgNamedTableNotFound, e.TableArn)}
	case err != nil:
		return err
	}
	if before.Scratch != "" { // of an unfinished run
		if err := s.o.Store.History.DropScratch(ctx, before.Scratch); err != nil {
			return err
		}
	}
	scratch := s.o.Store.History.NewScratch()
	if err := c.Save(ctx, exportProgress{Scratch: scratch}); err != nil {
		return err
	}
	if of.Request.incremental() {
		err = s.writeChanges(ctx, w, t, scratch, e, f)
	} else {
		err = s.writeItems(ctx, w, t, scratch, e, f)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	if err := w.Finish(s.o.Now()); err != nil {
		return err
	}
	return c.Save(ctx, exportProgress{Items: w.Items(), Billed: w.BilledBytes()})
}

// finished records the result of an export whose files are complete.
func (s *Service) finished(ctx context.Context, c *jobs.Claim, bucket *os.Root, e s3export.Export) error {
	text, err := bucket.ReadFile(path.Join(e.Path(), s3export.SummaryName))
	if err != nil {
		return err
	}
	var summary s3export.Summary
	if err := json.Unmarshal(text, &summary); err != nil {
		return fmt.Errorf("reading %s of %s: %w", s3export.SummaryName, e.Path(), err)
	}
	if summary.ItemCount == nil {
		return fmt.Errorf("reading %s of %s: it has no itemCount", s3export.SummaryName, e.Path())
	}
	return c.Save(ctx, exportProgress{Items: *summary.ItemCount, Billed: summary.BilledSizeBytes})
}

// asStored reports whether an export writes the stored texts of items, which then need not be
// decoded.
func asStored(e s3export.Export, f filter) bool {
	return e.Format != s3export.FormatIon && f == filter{}
}

// writeItems writes the items of a full export.
func (s *Service) writeItems(ctx context.Context, w *s3export.Writer, t *tabledef.Table, scratch string, e s3export.Export, f filter) error {
	plain := asStored(e, f)
	for item, err := range s.o.Store.History.Items(ctx, t, scratch, history.Before(e.Time)) {
		if err != nil {
			return err
		}
		if plain {
			if err := w.AddText(item.JSON, item.Size); err != nil {
				return err
			}
			continue
		}
		attributes, err := item.Attributes()
		if err != nil {
			return err
		}
		if !f.takes(attributes) {
			continue
		}
		if err := w.Add(f.of(attributes)); err != nil {
			return err
		}
	}
	return nil
}

// writeChanges writes the change of each item between the times of an export, from included,
// to excluded.
func (s *Service) writeChanges(ctx context.Context, w *s3export.Writer, t *tabledef.Table, scratch string, e s3export.Export, f filter) error {
	from, before := changelog.SequenceAt(e.From), changelog.SequenceAt(e.Time)
	plain := asStored(e, f)
	for c, err := range s.o.Store.History.Changes(ctx, t, scratch, from, before) {
		if err != nil {
			return err
		}
		written := c.At.Time().UnixMicro()
		if plain {
			out := s3export.ChangeText{WriteMicros: written, Keys: c.Key, Old: s3export.Text(c.Old), New: s3export.Text(c.New)}
			if e.View == viewNew {
				out.Old = s3export.Text{}
			}
			if err := w.AddChangeText(out); err != nil {
				return err
			}
			continue
		}
		out := s3export.Change{WriteMicros: written, Keys: c.Key}
		for _, image := range []struct {
			of   changelog.Image
			into *attr.Item
		}{{c.Old, &out.Old}, {c.New, &out.New}} {
			if image.of.JSON == nil {
				continue
			}
			if *image.into, err = attr.UnmarshalItem(image.of.JSON); err != nil {
				return fmt.Errorf("reading an image of a change: %w", err)
			}
		}
		latest := out.New
		if latest == nil {
			latest = out.Old
		}
		if latest == nil { // the item was created and deleted
			latest = out.Keys
		}
		if !f.takes(latest) {
			continue
		}
		if out.Old, out.New = f.of(out.Old), f.of(out.New); e.View == viewNew {
			out.Old = nil
		}
		if err := w.AddChange(out); err != nil {
			return err
		}
	}
	return nil
}
