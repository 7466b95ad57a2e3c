// Package backups implements backups and restores of tables. With continuous backups, a
// table can be restored to any second of a period. On-demand backups outlive their table.
// The package checks requests, stores the state of each backup, and does the work in
// jobs. It reads past contents of tables through package history.
package backups

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Options configures a Service.
type Options struct {
	Store           *store.Store
	Now             func() time.Time
	Region, Account string
	Random          func(n int) []byte
	Delays          Delays
}

// Delays is how long changes appear to take. Zero means no delay.
type Delays struct {
	Backup time.Duration // time for which a backup is CREATING, and for which a new table still rejects backups
	Create time.Duration // time for which a restored table is CREATING
}

// Service implements the operations on backups. V is the validator of the request.
type Service struct {
	Options
	V request.Validator
}

// Kinds of jobs.
const (
	KindBackup  = "backup"
	KindRestore = "restore"
)

// The statuses and types, in DynamoDB's words.
const (
	statusCreating  = "CREATING"
	statusAvailable = "AVAILABLE"
	statusDeleted   = "DELETED"

	typeUser   = "USER"
	typeSystem = "SYSTEM"
)

// systemAge is how long the backup of a deleted table is kept.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/PointInTimeRecovery_Howitworks.html
const systemAge = tabledef.MaxRecoveryDays * 24 * time.Hour

// maxRestores limits concurrent restores.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const maxRestores = 50

// record is the request of a backup's job.
type record struct {
	Name  string          `json:"name"`
	Type  string          `json:"type"`
	Table json.RawMessage `json:"table"` // the definition
	// Before is the sequence number at which the backup ends: it contains all changes below
	// that number. It is 0 until the table's log is held.
	Before uint64 `json:"before,omitempty"`
	// Rows is the Bigtable table with the items, unless it is KeptTable of the id.
	Rows string `json:"rows,omitempty"`
}

// request returns the request of the job that backs up t: r with the definition of t.
func (r record) request(t *tabledef.Table) (json.RawMessage, error) {
	var err error
	if r.Table, err = tabledef.Encode(t); err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// progress is the progress of a copy.
type progress struct {
	Scratch string `json:"scratch,omitempty"` // table of package history
	Whole   bool   `json:"whole,omitempty"`   // all items are copied
	Items   int64  `json:"items"`
	Bytes   int64  `json:"bytes"`
}

// backup is a backup with its decoded job.
type backup struct {
	jobs.Job
	record
	progress
	def *tabledef.Table
}

func decode(j jobs.Job) (b backup, err error) {
	b.Job = j
	if err = json.Unmarshal(j.Request, &b.record); err == nil && j.Progress != nil {
		err = json.Unmarshal(j.Progress, &b.progress)
	}
	if err == nil {
		b.def, err = tabledef.Decode(b.Table)
	}
	if err != nil {
		return b, fmt.Errorf("backup %s: %w", j.ID, err)
	}
	return b, nil
}

// rows returns the Bigtable table with the items of the backup.
func (b *backup) rows(st *store.Store) string {
	if b.Rows != "" {
		return b.Rows
	}
	return st.KeptTable(b.ID)
}

func (s *Service) status(b *backup) string {
	if b.State == jobs.Running || b.Type == typeUser && s.Now().Before(b.Created.Add(s.Delays.Backup)) {
		return statusCreating
	}
	return statusAvailable
}

// expires returns the time at which a backup is deleted automatically, or zero if it is
// kept.
func (b *backup) expires() wire.EpochSeconds {
	if b.Type != typeSystem {
		return 0
	}
	return wire.EpochSeconds(b.Created.Add(systemAge).UnixMilli())
}

// The id of a job begins with its time, so that jobs are ordered by time. It consists of the last
// part of the backup's ARN, a slash and the name of the table.
const systemSuffix = "-00000000"

func newID(at time.Time, suffix, table string) string {
	return fmt.Sprintf("%014d%s/%s", at.UnixMilli(), suffix, table)
}

func (s *Service) tableARN(name string) string {
	return request.ARN{Region: s.Region, Account: s.Account, Table: name}.String()
}

func (s *Service) backupARN(id string) string {
	part, table, _ := strings.Cut(id, "/")
	return s.tableARN(table) + "/backup/" + part
}

var (
	backupARN = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^arn:([^:]+):([^:]+):([^:]*):([^:]*):table/([^/]+)/backup/([0-9]{14}-[0-9a-f]{8})$`)
	})
	region = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`) })
)

// parseARN returns the id of the backup in an ARN. The ARN must have a region, but not that of
// the service.
func (s *Service) parseARN(arn string) (id string, err error) {
	m := backupARN().FindStringSubmatch(arn)
	switch {
	case m == nil:
		return "", awserr.Validation(awserr.MsgBackupARN)
	case m[1] != "aws" && m[1] != "aws-cn" && m[1] != "aws-us-gov", m[2] != "dynamodb", m[3] != s.Region && !region().MatchString(m[3]):
		return "", awserr.Validation(awserr.MsgBackupARNOfPart)
	case m[4] != s.Account:
		return "", awserr.New(awserr.CodeAccessDenied, awserr.MsgAccessDenied)
	}
	return m[6] + "/" + m[5], nil
}

// backup returns the backup with the given ARN.
func (s *Service) backup(ctx context.Context, arn string) (backup, error) {
	id, err := s.parseARN(arn)
	if err != nil {
		return backup{}, err
	}
	j, err := s.Store.Jobs.Get(ctx, KindBackup, id)
	if errors.Is(err, jobs.ErrNotFound) || err == nil && j.State == jobs.Failed {
		return backup{}, awserr.New(awserr.CodeBackupNotFound, awserr.MsgBackupNotFound, arn)
	}
	if err != nil {
		return backup{}, err
	}
	return decode(j)
}

// table returns a table for the operations on backups. They do not find a table that is CREATING.
func (s *Service) table(ctx context.Context, name string) (*tabledef.Table, error) {
	t, err := s.Store.TableNow(ctx, name)
	if errors.Is(err, store.ErrTableNotFound) || err == nil && t.Status == tabledef.StatusCreating {
		return nil, awserr.New(awserr.CodeTableNotFound, awserr.MsgNamedTableNotFound, name)
	}
	return t, err
}

// young reports whether a table's backups are still being enabled.
func (s *Service) young(t *tabledef.Table) bool {
	return s.Now().Before(t.Created.Add(s.Delays.Create + s.Delays.Backup))
}

// CreateInput is the request of CreateBackup.
type CreateInput struct{ TableName, BackupName *string }

// CreateOutput is the response of CreateBackup.
type CreateOutput struct{ BackupDetails Details }

// Create creates a backup of a table in its current state.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateBackup.html
func (s *Service) Create(ctx context.Context, in *CreateInput) (*CreateOutput, error) {
	name, err := s.V.ChangedTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	s.V.Required("BackupName", in.BackupName != nil)
	if in.BackupName != nil {
		s.V.Name("BackupName", *in.BackupName)
	}
	if err := s.V.Constrained(); err != nil {
		return nil, err
	}
	t, err := s.table(ctx, name)
	if err != nil {
		return nil, err
	}
	if s.young(t) {
		return nil, awserr.New(awserr.CodeContinuousBackupsUnavailable, awserr.MsgBackupsUnavailable, name)
	}
	id := newID(s.Now(), "-"+hex.EncodeToString(s.Random(4)), name)
	j, err := s.create(ctx, id, record{Name: *in.BackupName, Type: typeUser}, t)
	if err != nil {
		return nil, s.tableError(err, name)
	}
	b, err := decode(j)
	if err != nil {
		return nil, err
	}
	b.State = jobs.Running // the service's answer, however fast the backup is
	return &CreateOutput{s.details(&b, s.backupARN(id))}, nil
}

func (s *Service) tableError(err error, name string) error {
	if errors.Is(err, store.ErrTableNotFound) {
		return awserr.New(awserr.CodeTableNotFound, awserr.MsgNamedTableNotFound, name)
	}
	return err
}

func (s *Service) create(ctx context.Context, id string, r record, t *tabledef.Table) (jobs.Job, error) {
	request, err := r.request(t)
	if err != nil {
		return jobs.Job{}, err
	}
	w, spec := worker{s.Store}, jobs.Spec{Kind: KindBackup, ID: id, Request: request}
	if spec.Done = t.Status == tabledef.StatusDeleting; spec.Done {
		err = w.copyLast(ctx, id, t)
	} else {
		spec.Prepare = func(ctx context.Context) (json.RawMessage, error) { return w.hold(ctx, id, r, t) }
	}
	var j jobs.Job
	if err == nil {
		j, err = s.Store.Jobs.Create(ctx, spec)
	}
	if errors.Is(err, jobs.ErrTooMany) {
		err = awserr.New(awserr.CodeLimitExceeded, awserr.MsgTooManyBackups, jobs.DefaultMost)
	}
	if err != nil && spec.Done {
		err = errors.Join(err, s.Store.DropKept(context.WithoutCancel(ctx), s.Store.KeptTable(id)))
	}
	return j, err
}

// ARNInput is the request of DescribeBackup and DeleteBackup.
type ARNInput struct{ BackupArn *string }

// DescribeOutput is the response of DescribeBackup and DeleteBackup.
type DescribeOutput struct{ BackupDescription Description }

// named returns the backup of a request, and its ARN.
func (s *Service) named(ctx context.Context, in *ARNInput) (b backup, arn string, err error) {
	s.V.Required("BackupArn", in.BackupArn != nil)
	s.V.Length("BackupArn", in.BackupArn, 0, maxARNChars) // a shorter text is not the ARN of a backup
	if err := s.V.Constrained(); err != nil {
		return b, "", err
	}
	b, err = s.backup(ctx, *in.BackupArn)
	return b, *in.BackupArn, err
}

// The limits of BackupArn in the API model.
const (
	minARNChars = 37
	maxARNChars = 1024
)

// Describe returns the state of a backup.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeBackup.html
func (s *Service) Describe(ctx context.Context, in *ARNInput) (*DescribeOutput, error) {
	b, arn, err := s.named(ctx, in)
	if err != nil {
		return nil, err
	}
	return &DescribeOutput{s.describe(&b, arn)}, nil
}

// Delete deletes a backup.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DeleteBackup.html
func (s *Service) Delete(ctx context.Context, in *ARNInput) (*DescribeOutput, error) {
	b, arn, err := s.named(ctx, in)
	if err != nil {
		return nil, err
	}
	if b.Type == typeSystem {
		return nil, awserr.Validation(awserr.MsgSystemBackup, arn, b.Created.Add(systemAge).UTC().Format(time.RFC3339))
	}
	if s.status(&b) == statusCreating {
		return nil, awserr.New(awserr.CodeBackupInUse, awserr.MsgBackupCreating, arn)
	}
	if restores, err := s.restores(ctx); err != nil {
		return nil, err
	} else if restores.of[b.ID] != "" {
		return nil, awserr.New(awserr.CodeBackupInUse, awserr.MsgBackupRestoring, arn)
	}
	err = s.Store.Jobs.Delete(ctx, KindBackup, b.ID, func(jobs.Job) error { return nil })
	if errors.Is(err, jobs.ErrNotFound) {
		return nil, awserr.New(awserr.CodeBackupNotFound, awserr.MsgBackupNotFound, arn)
	}
	if err == nil {
		err = s.Store.DropKept(ctx, b.rows(s.Store))
	}
	if err != nil {
		return nil, err
	}
	d := s.describe(&b, arn)
	d.BackupDetails.BackupStatus = statusDeleted
	return &DescribeOutput{d}, nil
}

// ListInput is the request of ListBackups.
type ListInput struct {
	TableName               *string
	Limit                   *int32
	TimeRangeLowerBound     *float64
	TimeRangeUpperBound     *float64
	ExclusiveStartBackupArn *string
	BackupType              *string
}

// ListOutput is the response of ListBackups.
type ListOutput struct {
	BackupSummaries        []Summary
	LastEvaluatedBackupArn string `json:",omitzero"`
}

// maxList is the maximum and default number of backups in an answer.
const maxList = 100

// millis converts a time of a request, in seconds since 1970, to milliseconds. It limits the
// result to the range of int64.
func millis(seconds float64) int64 {
	switch n := math.RoundToEven(seconds * 1000); {
	case n >= math.MaxInt64:
		return math.MaxInt64
	case n <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(n)
	}
}

// List lists the backups of one table or of all tables, ordered by time.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListBackups.html
func (s *Service) List(ctx context.Context, in *ListInput) (*ListOutput, error) {
	name := ""
	if in.TableName != nil {
		name = request.TableOfARN(*in.TableName)
		s.V.Name("TableName", name)
	}
	s.V.AtMost("Limit", in.Limit, maxList)
	s.V.AtLeast("Limit", in.Limit, 1)
	s.V.Length("ExclusiveStartBackupArn", in.ExclusiveStartBackupArn, minARNChars, maxARNChars)
	s.V.Enum("BackupType", in.BackupType, typeUser, typeSystem, "AWS_BACKUP", "ALL")
	if err := s.V.Constrained(); err != nil {
		return nil, err
	}
	if lower, upper := in.TimeRangeLowerBound, in.TimeRangeUpperBound; lower != nil && upper != nil && millis(*lower) > millis(*upper) {
		return nil, awserr.Validation(awserr.MsgBackupTimeRange)
	}
	after := ""
	if arn := in.ExclusiveStartBackupArn; arn != nil {
		if m := backupARN().FindStringSubmatch(*arn); m != nil && m[3] != s.Region {
			return nil, awserr.Validation(awserr.MsgBackupStartOfRegion)
		}
		var err error
		if after, err = s.parseARN(*arn); err != nil {
			return nil, err
		}
	}
	wanted, limit := typeUser, maxList
	if in.BackupType != nil {
		wanted = *in.BackupType
	}
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	out := &ListOutput{BackupSummaries: []Summary{}}
	for j, err := range s.Store.Jobs.All(ctx, KindBackup, after) {
		if err != nil {
			return nil, err
		}
		_, table, _ := strings.Cut(j.ID, "/")
		at := j.Created.UnixMilli()
		if name != "" && table != name || j.State == jobs.Failed ||
			in.TimeRangeLowerBound != nil && at < millis(*in.TimeRangeLowerBound) || in.TimeRangeUpperBound != nil && at >= millis(*in.TimeRangeUpperBound) {
			continue
		}
		b, err := decode(j)
		if err != nil {
			return nil, err
		}
		if wanted != "ALL" && b.Type != wanted {
			continue
		}
		if len(out.BackupSummaries) == limit {
			out.LastEvaluatedBackupArn = out.BackupSummaries[limit-1].BackupArn
			break
		}
		out.BackupSummaries = append(out.BackupSummaries, s.summary(&b))
	}
	return out, nil
}
