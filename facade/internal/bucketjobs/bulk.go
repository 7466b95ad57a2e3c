package bucketjobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/importfile"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// The statuses of bulk operations in addition to those of all jobs.
const (
	statusWithErrors = "COMPLETED_WITH_ERRORS"
	statusCancelling = "CANCELLING"
	statusCancelled  = "CANCELLED"
)

// The reports of a bulk operation, as OutputType names them.
const (
	outputErrors     = "ERROR"
	outputConditions = "CONDITION_CHECK_FAILURE"
)

// The performance tiers.
const (
	tierStandard    = "STANDARD"
	tierAccelerated = "ACCELERATED"
)

// minBulkUnits is the minimum of MaxWriteRequestUnits.
const minBulkUnits = 1024

// BulkRequest is the request of StartBulkPutItems.
type BulkRequest struct {
	ClientToken           *string `json:",omitzero"`
	InputS3Configuration  *BulkInput
	OutputS3Configuration *BulkOutput
	TableName             *string
	MaxWriteRequestUnits  *int64  `json:",omitzero"`
	PerformanceTier       *string `json:",omitzero"`
}

// BulkInput is the location and format of the items that a bulk operation reads.
type BulkInput struct {
	InputCompressionType *string `json:",omitzero"`
	InputFormat          *string
	S3Bucket             *string
	S3BucketOwner        *string `json:",omitzero"`
	S3KeyPrefix          *string `json:",omitzero"`
}

// BulkOutput selects the reports that a bulk operation writes, and their location.
type BulkOutput struct {
	OutputType     []string
	S3Bucket       *string
	S3BucketOwner  *string `json:",omitzero"`
	S3KeyPrefix    *string `json:",omitzero"`
	S3SseAlgorithm *string `json:",omitzero"`
	S3SseKmsKeyID  *string `json:"S3SseKmsKeyId,omitzero"`
}

// constraints checks the members of a request against the model. The order of the checks is
// an assumption.
func (in *BulkRequest) constraints(v *request.Validator) {
	v.Pattern("ClientToken", in.ClientToken, clientToken)
	v.Required("InputS3Configuration", in.InputS3Configuration != nil)
	if from := in.InputS3Configuration; from != nil {
		bucketConstraints(v, "InputS3Configuration.", from.S3Bucket, from.S3BucketOwner, from.S3KeyPrefix)
		v.Required("InputS3Configuration.InputFormat", from.InputFormat != nil)
		v.Enum("InputS3Configuration.InputFormat", from.InputFormat, importfile.FormatJSON, importfile.FormatIon)
		v.Enum("InputS3Configuration.InputCompressionType", from.InputCompressionType, importfile.Zstd, importfile.None, importfile.Gzip)
	}
	v.Required("OutputS3Configuration", in.OutputS3Configuration != nil)
	if to := in.OutputS3Configuration; to != nil {
		bucketConstraints(v, "OutputS3Configuration.", to.S3Bucket, to.S3BucketOwner, to.S3KeyPrefix)
		v.Count("OutputS3Configuration.OutputType", to.OutputType == nil, len(to.OutputType), max(1, len(to.OutputType)), "")
		for i := range to.OutputType {
			v.Enum(fmt.Sprintf("OutputS3Configuration.OutputType.%d.member", i+1), &to.OutputType[i], outputErrors, outputConditions)
		}
		v.Enum("OutputS3Configuration.S3SseAlgorithm", to.S3SseAlgorithm, sseAES, sseKMS)
		v.Length("OutputS3Configuration.S3SseKmsKeyId", to.S3SseKmsKeyID, 1, maxKMSKeyChars)
	}
	if n := in.MaxWriteRequestUnits; n != nil && *n < minBulkUnits {
		v.Fail("MaxWriteRequestUnits", request.Quoted(strconv.FormatInt(*n, 10)), fmt.Sprintf(awserr.MsgMemberMinValue, minBulkUnits))
	}
	v.Enum("PerformanceTier", in.PerformanceTier, tierStandard, tierAccelerated)
}

func bucketConstraints(v *request.Validator, path string, bucket, owner, prefix *string) {
	v.Required(path+"S3Bucket", bucket != nil)
	v.Pattern(path+"S3Bucket", bucket, bucketName)
	v.Length(path+"S3Bucket", bucket, 0, maxBucketChars)
	v.Pattern(path+"S3BucketOwner", owner, bucketOwner)
	v.Length(path+"S3KeyPrefix", prefix, 0, maxPrefixChars)
}

// bulkJob stores the request of a bulk operation in the row of its job.
type bulkJob struct {
	Table   string // name
	TableID string
	Request BulkRequest
	Token   string
	// Cancelled is set when a client cancels the operation.
	Cancelled bool `json:",omitzero"`
}

// bulkProgress stores the progress of a bulk operation in the row of its job.
type bulkProgress struct {
	Begun      bool
	Key        string // of the current object; "" before the first
	Next       int64  // the next record of that object
	TotalBytes *int64 // of all objects; nil if unknown
	ReadBytes  int64  // of the finished objects
	Processed  int64
	Failed     int64
	Reports    map[string]int64 // sizes of the reports, by OutputType
	Usage      capacity.BulkBytes
	Whole      bool // no work is left
}

// BulkDescription describes a bulk operation.
type BulkDescription struct {
	BulkOperationARN      string `json:"BulkOperationArn"`
	BulkOperationStatus   string
	BulkOperationUsage    []BulkUsage `json:",omitzero"`
	ClientToken           string
	EndTime               wire.EpochSeconds `json:",omitzero"`
	FailedItemCount       int64
	FailureCode           string `json:",omitzero"`
	FailureMessage        string `json:",omitzero"`
	InputS3Configuration  *BulkInput
	MaxWriteRequestUnits  *int64 `json:",omitzero"`
	OutputS3Configuration *BulkOutput
	PerformanceTier       string
	ProcessedInputBytes   int64
	ProcessedItemCount    int64
	StartTime             wire.EpochSeconds
	TableDetails          []BulkTable
	TotalInputBytes       *int64 `json:",omitzero"`
}

// BulkTable identifies the table of a bulk operation.
type BulkTable struct {
	TableID   string `json:"TableId"`
	TableName *string
}

// BulkUsage is the capacity that a bulk operation consumed, by table and index.
type BulkUsage struct {
	BulkPutBytes           int64
	GlobalSecondaryIndexes map[string]BulkBytes `json:",omitzero"`
	LocalSecondaryIndexes  map[string]BulkBytes `json:",omitzero"`
	Table                  BulkBytes
	TableName              *string
	VectorIndexes          map[string]BulkVectorBytes `json:",omitzero"`
}

// BulkBytes is the capacity that a bulk operation consumed on a table or an index.
type BulkBytes struct{ BulkPutBytes int64 }

// BulkVectorBytes is the capacity that a bulk operation consumed on a vector index.
type BulkVectorBytes struct{ BulkPutVectorBytes int64 }

// BulkOperationOutput is the response of StartBulkPutItems and DescribeBulkOperation.
type BulkOperationOutput struct{ BulkOperationDescription *BulkDescription }

// StartBulk starts an operation that puts the items in a bucket into an existing table.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_StartBulkPutItems.html
func (s *Service) StartBulk(ctx context.Context, v *request.Validator, in *BulkRequest) (*BulkOperationOutput, error) {
	name := v.TableName(in.TableName)
	in.constraints(v)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if to := in.OutputS3Configuration; to.S3SseKmsKeyID != nil && !is(to.S3SseAlgorithm, sseKMS) {
		return nil, awserr.Validation(awserr.MsgExportKeyWithoutKMS)
	}
	t, err := token(in.ClientToken, in)
	if err != nil {
		return nil, err
	}
	if j, found, err := s.earlier(ctx, &bulkWords, t); err != nil {
		return nil, err
	} else if found {
		return s.describeBulk(ctx, &j)
	}
	def, err := s.o.Store.TableNow(ctx, name)
	if errors.Is(err, store.ErrTableNotFound) {
		return nil, awserr.ResourceNotFound(awserr.MsgTableNotFound, name)
	}
	if err == nil {
		err = s.checkBulkTable(def)
	}
	if err != nil {
		return nil, err
	}
	j, err := s.create(ctx, &bulkWords, t, s.o.Now(), bulkJob{Table: name, TableID: def.ID, Request: *in, Token: cmp.Or(t.Text, s.newToken())})
	if err != nil {
		return nil, err
	}
	return s.describeBulk(ctx, &j)
}

// checkBulkTable rejects tables that are neither ACTIVE nor UPDATING, and tables with an index
// that is being created.
func (s *Service) checkBulkTable(t *tabledef.Table) error {
	if t.Status != tabledef.StatusActive && t.Status != tabledef.StatusUpdating {
		return &tabledef.TableInUseError{Table: t.Name, Status: t.Status}
	}
	for i := range t.Indexes {
		if t.Indexes[i].Status == tabledef.StatusCreating {
			return awserr.New(awserr.CodeResourceInUse, awserr.MsgBulkIndexChanging, t.Indexes[i].Name)
		}
	}
	for _, ix := range t.LiveVectors() {
		if ix.StatusAt(s.o.Now()) == tabledef.StatusCreating {
			return awserr.New(awserr.CodeResourceInUse, awserr.MsgBulkIndexChanging, ix.Name)
		}
	}
	return nil
}

// bulkStatus returns the current status of a bulk operation, and the time of its end; 0 while
// it runs.
func (s *Service) bulkStatus(j *jobs.Job, of *bulkJob, came *bulkProgress) (status string, ended wire.EpochSeconds) {
	status, at := s.status(j)
	switch {
	case status == statusInProgress && of.Cancelled:
		return statusCancelling, 0
	case status == statusInProgress:
		return status, 0
	case status == statusCompleted && of.Cancelled:
		status = statusCancelled
	case status == statusCompleted && came.Failed > 0:
		status = statusWithErrors
	}
	return status, wire.EpochSeconds(at.UnixMilli())
}

func (s *Service) bulkARN(j *jobs.Job, of *bulkJob) string { return arn(j, s.tableARN(of.Table)) }

func (s *Service) describeBulk(ctx context.Context, j *jobs.Job) (*BulkOperationOutput, error) {
	var of bulkJob
	var came bulkProgress
	if err := readJob(j, &of, &came); err != nil {
		return nil, err
	}
	in := of.Request
	d := &BulkDescription{
		BulkOperationARN: s.bulkARN(j, &of), ClientToken: of.Token, FailedItemCount: came.Failed, InputS3Configuration: in.InputS3Configuration,
		MaxWriteRequestUnits: in.MaxWriteRequestUnits, OutputS3Configuration: in.OutputS3Configuration, PerformanceTier: tierStandard,
		ProcessedInputBytes: came.ReadBytes, ProcessedItemCount: came.Processed, StartTime: wire.EpochSeconds(j.Created.UnixMilli()),
		TableDetails: []BulkTable{{of.TableID, in.TableName}}, TotalInputBytes: came.TotalBytes,
	}
	if in.PerformanceTier != nil {
		d.PerformanceTier = *in.PerformanceTier
	}
	switch d.BulkOperationStatus, d.EndTime = s.bulkStatus(j, &of, &came); d.BulkOperationStatus {
	case statusFailed:
		d.FailureCode, d.FailureMessage = j.Failure.Code, j.Failure.Message
	case statusCancelled:
		d.FailureCode, d.FailureMessage = awserr.FailureCancelled, awserr.MsgBulkCancelled
	}
	if came.Processed > 0 {
		d.BulkOperationUsage = []BulkUsage{s.usage(ctx, &of, &came.Usage)}
	}
	return &BulkOperationOutput{d}, nil
}

// usage returns the consumption of a bulk operation. It counts a deleted index as a global one.
func (s *Service) usage(ctx context.Context, of *bulkJob, used *capacity.BulkBytes) BulkUsage {
	t, err := s.o.Store.TableNow(ctx, of.Table)
	u := BulkUsage{BulkPutBytes: used.Table, Table: BulkBytes{used.Table}, TableName: of.Request.TableName}
	for name, bytes := range used.Indexes {
		u.BulkPutBytes += bytes
		to := &u.GlobalSecondaryIndexes
		if err == nil {
			if ix := t.Index(name); ix != nil && !ix.Global {
				to = &u.LocalSecondaryIndexes
			}
		}
		if *to == nil {
			*to = map[string]BulkBytes{}
		}
		(*to)[name] = BulkBytes{bytes}
	}
	for name, bytes := range used.Vectors {
		if u.VectorIndexes == nil {
			u.VectorIndexes = map[string]BulkVectorBytes{}
		}
		u.VectorIndexes[name] = BulkVectorBytes{bytes}
	}
	return u
}

// BulkARNRequest is the request of DescribeBulkOperation and CancelBulkOperation.
type BulkARNRequest struct {
	BulkOperationARN *string `json:"BulkOperationArn"`
}

var bulkWords = words{
	kindBulk, "BulkOperationArn", awserr.MsgBulkARN, awserr.CodeResourceNotFound, awserr.MsgBulkNotFound, awserr.MsgBulkRegion,
	awserr.CodeIdempotentMismatch, awserr.MsgBulkTokenMismatch,
}

// DescribeBulk returns the state of a bulk operation.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeBulkOperation.html
func (s *Service) DescribeBulk(ctx context.Context, v *request.Validator, in *BulkARNRequest) (*BulkOperationOutput, error) {
	j, err := s.find(ctx, v, &bulkWords, in.BulkOperationARN)
	if err != nil {
		return nil, err
	}
	return s.describeBulk(ctx, &j)
}

// CancelBulkOutput is the response of CancelBulkOperation.
type CancelBulkOutput struct {
	BulkOperationARN    string `json:"BulkOperationArn"`
	BulkOperationStatus string
}

// CancelBulk cancels a bulk operation, which then ends at its next checkpoint. Items that
// it has put by then stay in the table.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CancelBulkOperation.html
func (s *Service) CancelBulk(ctx context.Context, v *request.Validator, in *BulkARNRequest) (*CancelBulkOutput, error) {
	j, err := s.find(ctx, v, &bulkWords, in.BulkOperationARN)
	if err != nil {
		return nil, err
	}
	var of bulkJob
	_, err = s.o.Store.Jobs.Update(ctx, kindBulk, j.ID, func(j *jobs.Job) error {
		var came bulkProgress
		if err := readJob(j, &of, &came); err != nil {
			return err
		}
		if status, _ := s.bulkStatus(j, &of, &came); status != statusInProgress && status != statusCancelling {
			return awserr.Validation(awserr.MsgBulkEnded, status)
		}
		of.Cancelled = true
		text, err := json.Marshal(of)
		j.Request = []byte(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &CancelBulkOutput{s.bulkARN(&j, &of), statusCancelling}, nil
}

// ListBulkRequest is the request of ListBulkOperations.
type ListBulkRequest struct {
	MaxResults *int32
	NextToken  *string
}

// ListBulkOutput is the response of ListBulkOperations.
type ListBulkOutput struct {
	BulkOperationsSummaryList []BulkSummary
	NextToken                 string `json:",omitzero"`
}

// BulkSummary is an element in the list of bulk operations.
type BulkSummary struct {
	BulkOperationARN    string `json:"BulkOperationArn"`
	BulkOperationStatus string
	EndTime             wire.EpochSeconds `json:",omitzero"`
	StartTime           wire.EpochSeconds
}

// ListBulk lists the bulk operations of the last 90 days, newest first.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListBulkOperations.html
func (s *Service) ListBulk(ctx context.Context, v *request.Validator, in *ListBulkRequest) (*ListBulkOutput, error) {
	v.AtLeast("MaxResults", in.MaxResults, 1)
	v.AtMost("MaxResults", in.MaxResults, maxPage)
	v.Length("NextToken", in.NextToken, 1, maxARN)
	v.Pattern("NextToken", in.NextToken, bulkNextToken)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	limit := defaultPage
	if in.MaxResults != nil {
		limit = int(*in.MaxResults)
	}
	all, err := s.bulkPage(ctx, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &ListBulkOutput{BulkOperationsSummaryList: []BulkSummary{}}
	last := ""
	for j, err := range all {
		if err != nil {
			return nil, err
		}
		if len(out.BulkOperationsSummaryList) == limit {
			out.NextToken = bulkPageToken(last)
			break
		}
		var of bulkJob
		var came bulkProgress
		if err := readJob(&j, &of, &came); err != nil {
			return nil, err
		}
		status, ended := s.bulkStatus(&j, &of, &came)
		out.BulkOperationsSummaryList = append(out.BulkOperationsSummaryList, BulkSummary{s.bulkARN(&j, &of), status, ended, wire.EpochSeconds(j.Created.UnixMilli())})
		last = rowID(j.ID)
	}
	return out, nil
}

// bulkNextToken is the model's pattern of a page token. A token is made of the ID of a job: 14
// decimal digits, ten zeros and 8 hexadecimal digits.
const bulkNextToken = `([0-9a-f]{16})+`

var bulkTokenPattern = regexp.MustCompile(`^[0-9]{14}0{10}[0-9a-f]{8}$`)

func bulkPageToken(id string) string { return strings.Replace(id, "-", "0000000000", 1) }

// bulkPage yields the bulk operations that follow a token.
func (s *Service) bulkPage(ctx context.Context, after *string) (iter.Seq2[jobs.Job, error], error) {
	from := ""
	if after != nil {
		if !bulkTokenPattern.MatchString(*after) {
			return nil, awserr.Validation(awserr.MsgJobNextToken, *after)
		}
		const stamp, salt = 14, 8
		from = rowID((*after)[:stamp] + "-" + (*after)[len(*after)-salt:])
	}
	return s.o.Store.Jobs.All(ctx, kindBulk, from), nil
}
