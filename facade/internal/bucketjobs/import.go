package bucketjobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/importfile"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// ImportRequest is the request of ImportTable.
type ImportRequest struct {
	ClientToken          *string `json:",omitzero"`
	S3BucketSource       *BucketSource
	InputFormat          *string
	InputFormatOptions   *FormatOptions `json:",omitzero"`
	InputCompressionType *string        `json:",omitzero"`
	// TableCreationParameters are returned in descriptions as given.
	TableCreationParameters jsontext.Value
}

// BucketSource is the location of the files that an import reads.
type BucketSource struct {
	S3BucketOwner *string `json:",omitzero"`
	S3Bucket      *string
	S3KeyPrefix   *string `json:",omitzero"`
}

// FormatOptions describes the format of the files.
type FormatOptions struct {
	CSV *CSVOptions `json:"Csv,omitzero"`
}

// CSVOptions describes the format of CSV files.
type CSVOptions struct {
	Delimiter  *string  `json:",omitzero"`
	HeaderList []string `json:",omitzero"`
}

// Constraints checks the members of the request against the API model, except those of
// the table to create.
func (in *ImportRequest) Constraints(v *request.Validator) {
	v.Pattern("ClientToken", in.ClientToken, clientToken)
	v.Required("S3BucketSource", in.S3BucketSource != nil)
	if from := in.S3BucketSource; from != nil {
		v.Pattern("S3BucketSource.S3BucketOwner", from.S3BucketOwner, bucketOwner)
		v.Required("S3BucketSource.S3Bucket", from.S3Bucket != nil)
		v.Pattern("S3BucketSource.S3Bucket", from.S3Bucket, bucketName)
		v.Length("S3BucketSource.S3Bucket", from.S3Bucket, 0, maxBucketChars)
		v.Length("S3BucketSource.S3KeyPrefix", from.S3KeyPrefix, 0, maxPrefixChars)
	}
	v.Required("InputFormat", in.InputFormat != nil)
	v.Enum("InputFormat", in.InputFormat, importfile.FormatJSON, importfile.FormatIon, importfile.FormatCSV)
	if csv := in.csv(); csv != nil {
		v.Pattern("InputFormatOptions.Csv.Delimiter", csv.Delimiter, csvDelimiter)
		v.Length("InputFormatOptions.Csv.Delimiter", csv.Delimiter, 1, 1)
		if csv.HeaderList != nil {
			v.Count("InputFormatOptions.Csv.HeaderList", false, len(csv.HeaderList), maxCSVHeaders, "columns")
		}
	}
	v.Enum("InputCompressionType", in.InputCompressionType, importfile.Zstd, importfile.None, importfile.Gzip)
	v.Required("TableCreationParameters", len(in.TableCreationParameters) > 0 && in.TableCreationParameters.Kind() != 'n')
}

func (in *ImportRequest) csv() *CSVOptions {
	if in.InputFormatOptions == nil {
		return nil
	}
	return in.InputFormatOptions.CSV
}

// importJob is the request of an import in its row.
type importJob struct {
	Table    string // name
	TableARN string
	Request  ImportRequest
	Def      *tabledef.Table
	Token    string
}

// importProgress is the progress and result of an import.
type importProgress struct {
	Bytes, Processed, Imported, Errors int64

	Whole bool // everything is imported
}

// ImportDescription describes an import.
type ImportDescription struct {
	ImportARN               string `json:"ImportArn"`
	ImportStatus            string
	TableARN                string `json:"TableArn"`
	TableID                 string `json:"TableId"`
	ClientToken             string
	S3BucketSource          *BucketSource
	ErrorCount              int64
	CloudWatchLogGroupARN   string `json:"CloudWatchLogGroupArn"`
	InputFormat             *string
	InputFormatOptions      *FormatOptions `json:",omitzero"`
	InputCompressionType    string
	TableCreationParameters jsontext.Value
	StartTime               wire.EpochSeconds
	EndTime                 wire.EpochSeconds `json:",omitzero"`
	ProcessedSizeBytes      int64
	ProcessedItemCount      int64
	ImportedItemCount       int64
	FailureCode             string `json:",omitzero"`
	FailureMessage          string `json:",omitzero"`
}

// ImportOutput is the response of ImportTable and DescribeImport.
type ImportOutput struct{ ImportTableDescription *ImportDescription }

// Import starts an import into a new table. The caller must have checked the members of
// in. https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ImportTable.html
func (s *Service) Import(ctx context.Context, in *ImportRequest, def *tabledef.Table) (*ImportOutput, error) {
	if format := *in.InputFormat; in.InputFormatOptions != nil && format != importfile.FormatCSV {
		return nil, awserr.Validation(awserr.MsgImportOptions, format)
	}
	t, err := token(in.ClientToken, in)
	if err != nil {
		return nil, err
	}
	if j, found, err := s.earlier(ctx, &importWords, t); err != nil {
		return nil, err
	} else if found {
		return s.describeImport(&j)
	}
	there, err := s.o.Store.TableNow(ctx, def.Name)
	if err == nil {
		if imported, err := s.importing(ctx, there); err != nil {
			return nil, err
		} else if !imported { // otherwise this import must fail
			return nil, awserr.New(awserr.CodeResourceInUse, awserr.MsgTableExists, def.Name)
		}
	} else if !errors.Is(err, store.ErrTableNotFound) {
		return nil, err
	}
	now := s.o.Now()
	def.ID = s.newToken()
	job := importJob{Table: def.Name, TableARN: s.tableARN(def.Name), Request: *in, Def: def, Token: t.Text}
	if job.Token == "" {
		job.Token = s.newToken()
	}
	j, err := s.create(ctx, &importWords, t, now, job)
	if err != nil {
		return nil, err
	}
	return s.describeImport(&j)
}

// importing reports whether a table is CREATING for an import in progress.
func (s *Service) importing(ctx context.Context, t *tabledef.Table) (bool, error) {
	if t.Status != tabledef.StatusCreating {
		return false, nil
	}
	for j, err := range s.o.Store.Jobs.All(ctx, kindImport, "") {
		if err != nil {
			return false, err
		}
		var of importJob
		if err := readJob(&j, &of, nil); err != nil {
			return false, err
		}
		if of.Def.ID == t.ID {
			return true, nil
		}
	}
	return false, nil
}

// arn returns the ARN of a job for a table.
func arn(j *jobs.Job, tableARN string) string { return tableARN + "/" + j.Kind + "/" + rowID(j.ID) }

func (s *Service) logGroupARN() string {
	return "arn:aws:logs:" + s.o.Region + ":" + s.o.Account + ":log-group:/aws-dynamodb/imports:*"
}

func (s *Service) describeImport(j *jobs.Job) (*ImportOutput, error) {
	var of importJob
	var came importProgress
	if err := readJob(j, &of, &came); err != nil {
		return nil, err
	}
	d := &ImportDescription{
		ImportARN: arn(j, of.TableARN), TableARN: of.TableARN, TableID: of.Def.ID, ClientToken: of.Token,
		S3BucketSource: of.Request.S3BucketSource, ErrorCount: came.Errors, CloudWatchLogGroupARN: s.logGroupARN(),
		InputFormat: of.Request.InputFormat, InputFormatOptions: of.Request.InputFormatOptions, InputCompressionType: importfile.None,
		TableCreationParameters: of.Request.TableCreationParameters, StartTime: wire.EpochSeconds(j.Created.UnixMilli()),
		ProcessedSizeBytes: came.Bytes, ProcessedItemCount: came.Processed, ImportedItemCount: came.Imported,
	}
	if c := of.Request.InputCompressionType; c != nil {
		d.InputCompressionType = *c
	}
	if d.S3BucketSource.S3BucketOwner == nil {
		from := *d.S3BucketSource
		from.S3BucketOwner = &s.o.Account
		d.S3BucketSource = &from
	}
	status, ended := s.status(j)
	if d.ImportStatus = status; status != statusInProgress {
		d.EndTime = wire.EpochSeconds(ended.UnixMilli())
	}
	if status == statusFailed {
		d.FailureCode, d.FailureMessage = j.Failure.Code, j.Failure.Message
	}
	return &ImportOutput{d}, nil
}

// readJob decodes the request and the progress of a job.
func readJob(j *jobs.Job, request, progress any) error {
	if err := json.Unmarshal([]byte(j.Request), request); err != nil {
		return fmt.Errorf("reading %s %s: %w", j.Kind, j.ID, err)
	}
	if len(j.Progress) == 0 || progress == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(j.Progress), progress); err != nil {
		return fmt.Errorf("reading the progress of %s %s: %w", j.Kind, j.ID, err)
	}
	return nil
}

var importWords = words{
	kindImport, "ImportArn", awserr.MsgImportARN, awserr.CodeImportNotFound, awserr.MsgImportNotFound, awserr.MsgImportRegion,
	awserr.CodeImportConflict, awserr.MsgImportConflict,
}

// DescribeImportRequest is the request of DescribeImport.
type DescribeImportRequest struct {
	ImportARN *string `json:"ImportArn"`
}

// DescribeImport returns the state of an import.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeImport.html
func (s *Service) DescribeImport(ctx context.Context, v *request.Validator, in *DescribeImportRequest) (*ImportOutput, error) {
	j, err := s.find(ctx, v, &importWords, in.ImportARN)
	if err != nil {
		return nil, err
	}
	return s.describeImport(&j)
}

// ListImportsRequest is the request of ListImports.
type ListImportsRequest struct {
	TableARN  *string `json:"TableArn"`
	PageSize  *int32
	NextToken *string
}

// ListImportsOutput is the response of ListImports.
type ListImportsOutput struct {
	ImportSummaryList []ImportSummary
	NextToken         string `json:",omitzero"`
}

// ImportSummary is an element in the list of imports.
type ImportSummary struct {
	ImportARN             string `json:"ImportArn"`
	ImportStatus          string
	TableARN              string `json:"TableArn"`
	S3BucketSource        *BucketSource
	CloudWatchLogGroupARN string `json:"CloudWatchLogGroupArn"`
	InputFormat           *string
	StartTime             wire.EpochSeconds
	EndTime               wire.EpochSeconds `json:",omitzero"`
}

// ListImports lists imports, newest first, including those of deleted tables.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListImports.html
func (s *Service) ListImports(ctx context.Context, v *request.Validator, in *ListImportsRequest) (*ListImportsOutput, error) {
	only, limit, err := s.listed(v, in.TableARN, "PageSize", in.PageSize)
	if err != nil {
		return nil, err
	}
	all, err := s.page(ctx, kindImport, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &ListImportsOutput{ImportSummaryList: []ImportSummary{}}
	var last jobs.Job
	for j, err := range all {
		if err != nil {
			return nil, err
		}
		if only != "" && tableOf(j) != only {
			continue
		}
		if len(out.ImportSummaryList) == limit {
			out.NextToken = pageToken(&last)
			break
		}
		described, err := s.describeImport(&j)
		if err != nil {
			return nil, err
		}
		d := described.ImportTableDescription
		out.ImportSummaryList = append(out.ImportSummaryList, ImportSummary{
			d.ImportARN, d.ImportStatus, d.TableARN, d.S3BucketSource, d.CloudWatchLogGroupARN, d.InputFormat, d.StartTime, d.EndTime,
		})
		last = j
	}
	return out, nil
}

// listed checks the common parameters of lists: the table to restrict the list to, "" for
// all, and the size of a page.
func (s *Service) listed(v *request.Validator, tableARN *string, sizeMember string, size *int32) (only string, limit int, err error) {
	v.Length("TableArn", tableARN, 0, maxARN)
	v.AtLeast(sizeMember, size, 1)
	v.AtMost(sizeMember, size, maxPage)
	if err := v.Constrained(); err != nil {
		return "", 0, err
	}
	limit = defaultPage
	if size != nil {
		limit = int(*size)
	}
	if tableARN == nil {
		return "", limit, nil
	}
	of, err := s.table(*tableARN)
	return of.Table, limit, err
}

// table parses the ARN of a table of this account.
func (s *Service) table(arn string) (request.ARN, error) {
	r, ok := resourceOf(arn)
	switch {
	case arn == "":
		return r, awserr.Validation(awserr.MsgJobTableARNEmpty)
	case !ok:
		return r, awserr.Validation(awserr.MsgJobTableARN)
	case r.Rest != "":
		return r, awserr.Validation(awserr.MsgJobTableARNOfPart)
	case r.Account != s.o.Account:
		return r, awserr.New(awserr.CodeAccessDenied, awserr.MsgAccessDenied)
	}
	return r, nil
}
