package bucketjobs

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/store/history"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// The views of incremental exports.
const (
	viewNew       = "NEW_IMAGE"
	viewNewAndOld = "NEW_AND_OLD_IMAGES"
)

// The encryption algorithms.
const (
	sseAES = "AES256"
	sseKMS = "KMS"
)

// ExportRequest is the request of ExportTableToPointInTime.
type ExportRequest struct {
	TableARN                       *string            `json:"TableArn"`
	ExportTime                     *wire.EpochSeconds `json:",omitzero"`
	ClientToken                    *string            `json:",omitzero"`
	S3Bucket                       *string
	S3BucketOwner                  *string `json:",omitzero"`
	S3Prefix                       *string `json:",omitzero"`
	S3SseAlgorithm                 *string `json:",omitzero"`
	S3SseKmsKeyID                  *string `json:"S3SseKmsKeyId,omitzero"`
	ExportFormat                   *string `json:",omitzero"`
	ExportType                     *string `json:",omitzero"`
	IncrementalExportSpecification *Period `json:",omitzero"`
	// FilterSpecification is returned in descriptions as given.
	FilterSpecification jsontext.Value `json:",omitzero"`
}

// Period is the period of time that an incremental export covers.
type Period struct {
	ExportFromTime *wire.EpochSeconds `json:",omitzero"`
	ExportToTime   *wire.EpochSeconds `json:",omitzero"`
	ExportViewType *string            `json:",omitzero"`
}

// Constraints checks the members of the request against the API model.
func (in *ExportRequest) Constraints(v *request.Validator) {
	v.Required("TableArn", in.TableARN != nil)
	v.Length("TableArn", in.TableARN, 0, maxARN)
	v.Pattern("ClientToken", in.ClientToken, clientToken)
	v.Required("S3Bucket", in.S3Bucket != nil)
	v.Pattern("S3Bucket", in.S3Bucket, bucketName)
	v.Length("S3Bucket", in.S3Bucket, 0, maxBucketChars)
	v.Pattern("S3BucketOwner", in.S3BucketOwner, bucketOwner)
	v.Length("S3Prefix", in.S3Prefix, 0, maxPrefixChars)
	v.Enum("S3SseAlgorithm", in.S3SseAlgorithm, sseAES, sseKMS)
	v.Length("S3SseKmsKeyId", in.S3SseKmsKeyID, 1, maxKMSKeyChars)
	v.Enum("ExportFormat", in.ExportFormat, s3export.FormatDynamoDBJSON, s3export.FormatIon)
	v.Enum("ExportType", in.ExportType, s3export.TypeFull, s3export.TypeIncremental)
	if p := in.IncrementalExportSpecification; p != nil {
		v.Enum("IncrementalExportSpecification.ExportViewType", p.ExportViewType, viewNew, viewNewAndOld)
	}
}

// incremental reports whether the request is for changes.
func (in *ExportRequest) incremental() bool { return is(in.ExportType, s3export.TypeIncremental) }

func is(member *string, want string) bool { return member != nil && *member == want }

// couplings checks members that depend on each other.
func (in *ExportRequest) couplings() error {
	p := in.IncrementalExportSpecification
	switch {
	case p != nil && in.ExportType == nil:
		return awserr.Validation(awserr.MsgExportSpecNoType)
	case p != nil && !in.incremental():
		return awserr.Validation(awserr.MsgExportSpecOfFull)
	case p == nil && in.incremental():
		return awserr.Validation(awserr.MsgExportSpecMissing)
	case p != nil && p.ExportFromTime == nil:
		return awserr.Validation(awserr.MsgExportFromMissing)
	case in.S3SseKmsKeyID != nil && !is(in.S3SseAlgorithm, sseKMS):
		return awserr.Validation(awserr.MsgExportKeyWithoutKMS)
	}
	return nil
}

// exportJob is the request of an export in its row, with its times filled in.
type exportJob struct {
	Table    string // name
	TableARN string
	TableID  string
	Request  ExportRequest
	Token    string
}

// exportProgress is the progress and result of an export.
type exportProgress struct {
	Items, Billed int64
	Scratch       string // table that was created for it
}

// ExportDescription describes an export.
type ExportDescription struct {
	ExportARN       string `json:"ExportArn"`
	ExportStatus    string
	StartTime       wire.EpochSeconds
	EndTime         wire.EpochSeconds  `json:",omitzero"`
	ExportManifest  string             `json:",omitzero"`
	TableARN        string             `json:"TableArn"`
	TableID         string             `json:"TableId"`
	ExportTime      *wire.EpochSeconds `json:",omitzero"`
	ClientToken     string
	S3Bucket        *string
	S3BucketOwner   *string `json:",omitzero"`
	S3Prefix        *string `json:",omitzero"`
	S3SseAlgorithm  string
	S3SseKmsKeyID   *string `json:"S3SseKmsKeyId,omitzero"`
	FailureCode     string  `json:",omitzero"`
	FailureMessage  string  `json:",omitzero"`
	ExportFormat    string
	BilledSizeBytes *int64  `json:",omitzero"`
	ItemCount       *int64  `json:",omitzero"`
	ExportType      *string `json:",omitzero"`

	IncrementalExportSpecification *Period        `json:",omitzero"`
	FilterSpecification            jsontext.Value `json:",omitzero"`
}

// ExportOutput is the response of ExportTableToPointInTime and DescribeExport.
type ExportOutput struct{ ExportDescription *ExportDescription }

// Export starts an export. It makes its checks in the same order as AWS.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ExportTableToPointInTime.html
func (s *Service) Export(ctx context.Context, v *request.Validator, in *ExportRequest) (*ExportOutput, error) {
	in.Constraints(v)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	of, err := s.table(*in.TableARN)
	if err == nil {
		err = in.couplings()
	}
	if err != nil {
		return nil, err
	}
	f, err := parseFilter(v, in.FilterSpecification)
	if err != nil {
		return nil, err
	}
	t, err := token(in.ClientToken, in)
	if err != nil {
		return nil, err
	}
	if j, found, err := s.earlier(ctx, &exportWords, t); err != nil {
		return nil, err
	} else if found {
		return s.describeExport(&j)
	}
	def, err := s.o.Store.TableNow(ctx, of.Table)
	switch {
	case of.Region != s.o.Region, errors.Is(err, store.ErrTableNotFound), err == nil && def.Status == tabledef.StatusCreating:
		return nil, awserr.New(awserr.CodeTableNotFound, awserr.MsgNamedTableNotFound, *in.TableARN)
	case err != nil:
		return nil, err
	}
	now := s.o.Now()
	asked := *in
	if err := s.checkTimes(ctx, def, &asked, now); err != nil {
		return nil, err
	}
	if err := f.check(v, def.Key); err != nil {
		return nil, err
	}
	job := exportJob{Table: of.Table, TableARN: s.tableARN(of.Table), TableID: def.ID, Request: asked, Token: cmp.Or(t.Text, s.newToken())}
	j, err := s.create(ctx, &exportWords, t, now, job)
	if err != nil {
		return nil, err
	}
	return s.describeExport(&j)
}

// checkTimes checks the times of an export, and fills in missing ones.
func (s *Service) checkTimes(ctx context.Context, t *tabledef.Table, in *ExportRequest, now time.Time) error {
	given := in.IncrementalExportSpecification
	if given != nil {
		p := *given
		if p.ExportToTime == nil {
			p.ExportToTime = new(wire.EpochSeconds(now.UnixMilli()))
		}
		if p.ExportViewType == nil {
			p.ExportViewType = new(viewNewAndOld)
		}
		in.IncrementalExportSpecification = &p
		from, until := p.ExportFromTime.Time(), p.ExportToTime.Time()
		switch {
		case from.Before(t.Created.Truncate(time.Millisecond)):
			return awserr.New(awserr.CodeInvalidExportTime, awserr.MsgExportFromTooEarly, isoTime(t.Created))
		case until.After(now):
			return awserr.New(awserr.CodeInvalidExportTime, awserr.MsgExportToTooLate, isoTime(now))
		case until.Sub(from) < minPeriod:
			return awserr.New(awserr.CodeInvalidExportTime, awserr.MsgExportPeriodTooShort)
		case until.Sub(from) > maxPeriod:
			return awserr.New(awserr.CodeInvalidExportTime, awserr.MsgExportPeriodTooLong)
		}
	}
	if !t.Recovery.On() {
		return awserr.New(awserr.CodePointInTimeRecoveryUnavailable, awserr.MsgNoRecovery, t.Name)
	}
	earliest, latest := t.Recovery.Earliest(now).Truncate(time.Millisecond), now.Add(-recoveryLag)
	if latest.Before(t.Recovery.Since) {
		latest = t.Recovery.Since
	}
	switch {
	case given != nil && given.ExportFromTime.Time().Before(earliest):
		return awserr.New(awserr.CodeInvalidExportTime, awserr.MsgExportTime)
	case given != nil:
	case in.ExportTime == nil:
		at, err := s.reached(ctx, now)
		if err != nil {
			return err
		}
		in.ExportTime = new(wire.EpochSeconds(at.UnixMilli()))
	case in.ExportTime.Time().After(now), in.ExportTime.Time().Before(earliest):
		return awserr.New(awserr.CodeInvalidExportTime, awserr.MsgExportTime)
	case in.ExportTime.Time().After(latest):
		return awserr.New(awserr.CodeInvalidExportTime, awserr.MsgExportTimeLast)
	}
	return nil
}

// reached returns the current time, or the time of the last change if that is later: after a
// restart the numbers of changes are ahead of the clock for a moment.
func (s *Service) reached(ctx context.Context, now time.Time) (time.Time, error) {
	above, err := s.o.Store.History.Now(ctx)
	if err != nil || history.Before(now) >= above {
		return now, err
	}
	return changelog.Position{Sequence: above - 1}.Time(), nil
}

// isoTime formats a time for texts.
func isoTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

func (s *Service) describeExport(j *jobs.Job) (*ExportOutput, error) {
	var of exportJob
	var came exportProgress
	if err := readJob(j, &of, &came); err != nil {
		return nil, err
	}
	in := of.Request
	d := &ExportDescription{
		ExportARN: arn(j, of.TableARN), StartTime: wire.EpochSeconds(j.Created.UnixMilli()), TableARN: of.TableARN, TableID: of.TableID,
		ClientToken: of.Token, S3Bucket: in.S3Bucket, S3BucketOwner: in.S3BucketOwner, S3Prefix: in.S3Prefix, S3SseAlgorithm: sseAES, S3SseKmsKeyID: in.S3SseKmsKeyID,
		ExportFormat: s3export.FormatDynamoDBJSON, ExportType: in.ExportType, IncrementalExportSpecification: in.IncrementalExportSpecification,
		FilterSpecification: in.FilterSpecification,
	}
	if in.S3SseAlgorithm != nil {
		d.S3SseAlgorithm = *in.S3SseAlgorithm
	}
	if in.ExportFormat != nil {
		d.ExportFormat = *in.ExportFormat
	}
	if !in.incremental() {
		d.ExportTime = in.ExportTime
	}
	status, ended := s.status(j)
	switch d.ExportStatus = status; status {
	case statusCompleted:
		d.BilledSizeBytes, d.ItemCount = &came.Billed, &came.Items
		d.ExportManifest = exportOf(j, &of).Path() + "/" + s3export.SummaryName
		d.EndTime = wire.EpochSeconds(ended.UnixMilli())
	case statusFailed:
		d.FailureCode, d.FailureMessage = j.Failure.Code, j.Failure.Message
		d.EndTime = wire.EpochSeconds(ended.UnixMilli())
	}
	return &ExportOutput{d}, nil
}

var exportWords = words{
	kindExport, "ExportArn", awserr.MsgExportARN, awserr.CodeExportNotFound, awserr.MsgExportNotFound, awserr.MsgExportRegion,
	awserr.CodeExportConflict, awserr.MsgExportConflict,
}

// DescribeExportRequest is the request of DescribeExport.
type DescribeExportRequest struct {
	ExportARN *string `json:"ExportArn"`
}

// DescribeExport returns the state of an export.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeExport.html
func (s *Service) DescribeExport(ctx context.Context, v *request.Validator, in *DescribeExportRequest) (*ExportOutput, error) {
	j, err := s.find(ctx, v, &exportWords, in.ExportARN)
	if err != nil {
		return nil, err
	}
	return s.describeExport(&j)
}

// ListExportsRequest is the request of ListExports.
type ListExportsRequest struct {
	TableARN   *string `json:"TableArn"`
	MaxResults *int32
	NextToken  *string
}

// ListExportsOutput is the response of ListExports.
type ListExportsOutput struct {
	ExportSummaries []ExportSummary
	NextToken       string `json:",omitzero"`
}

// ExportSummary is an element in the list of exports.
type ExportSummary struct {
	ExportARN    string `json:"ExportArn"`
	ExportStatus string
	ExportType   string
}

// ListExports lists the exports of existing tables, newest first.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListExports.html
func (s *Service) ListExports(ctx context.Context, v *request.Validator, in *ListExportsRequest) (*ListExportsOutput, error) {
	only, limit, err := s.listed(v, in.TableARN, "MaxResults", in.MaxResults)
	if err != nil {
		return nil, err
	}
	all, err := s.page(ctx, kindExport, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &ListExportsOutput{ExportSummaries: []ExportSummary{}}
	ids := map[string]string{} // of existing tables
	var last jobs.Job
	for j, err := range all {
		if err != nil {
			return nil, err
		}
		var of exportJob
		if err := readJob(&j, &of, &exportProgress{}); err != nil {
			return nil, err
		}
		if only != "" && of.Table != only {
			continue
		}
		if id, err := s.idOf(ctx, ids, of.Table); err != nil {
			return nil, err
		} else if id != of.TableID {
			continue
		}
		if len(out.ExportSummaries) == limit {
			out.NextToken = pageToken(&last)
			break
		}
		status, _ := s.status(&j)
		kind := s3export.TypeFull
		if of.Request.incremental() {
			kind = s3export.TypeIncremental
		}
		out.ExportSummaries = append(out.ExportSummaries, ExportSummary{arn(&j, of.TableARN), status, kind})
		last = j
	}
	return out, nil
}

// idOf returns the id of a table, "" if it does not exist; known caches the ids.
func (s *Service) idOf(ctx context.Context, known map[string]string, name string) (string, error) {
	if id, ok := known[name]; ok {
		return id, nil
	}
	t, err := s.o.Store.TableNow(ctx, name)
	switch {
	case err == nil:
		known[name] = t.ID
	case errors.Is(err, store.ErrTableNotFound):
		known[name] = ""
	default:
		return "", err
	}
	return known[name], nil
}
