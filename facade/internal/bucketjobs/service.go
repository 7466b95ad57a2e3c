package bucketjobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// The kinds of jobs, which are also in their ARNs.
const (
	kindBulk   = "bulk-operation" // assumption
	kindExport = "export"
	kindImport = "import"
)

// keepJobs is how long an ended job is listed (assumption: as on the service).
const keepJobs = 90 * 24 * time.Hour

// Options configures a Service. All except Delay and BatchBytes are required.
type Options struct {
	Store   *store.Store
	Buckets *os.Root // folder whose subfolders stand for buckets
	Region  string
	Account string
	Now     func() time.Time
	Random  func(n int) []byte
	Wording func(operation string) request.Request
	Delay   time.Duration // minimum time for which jobs are IN_PROGRESS
	// BatchBytes limits the size of the items that an import writes in one batch.
	// Default: 4 MiB.
	BatchBytes int
}

// Service runs and describes exports, imports and bulk operations. It is safe for
// concurrent use.
type Service struct{ o Options }

// New returns a Service with the given options.
func New(o Options) *Service { return &Service{o} }

// Kinds returns the kinds of jobs that the service runs.
func (s *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{Name: kindExport, Run: s.runExport, Keep: keepJobs}, {Name: kindImport, Run: s.runImport, Keep: keepJobs}, {Name: kindBulk, Run: s.runBulk, Keep: keepJobs}}
}

// Wait waits until this process has no unfinished exports, imports or bulk operations.
func (s *Service) Wait(ctx context.Context) error {
	for _, kind := range []string{kindExport, kindImport, kindBulk} {
		if err := s.o.Store.Jobs.Wait(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// The statuses, in DynamoDB's words.
const (
	statusInProgress = "IN_PROGRESS"
	statusCompleted  = "COMPLETED"
	statusFailed     = "FAILED"
)

// status returns the apparent status of a job, and the time at which it ended.
func (s *Service) status(j *jobs.Job) (status string, ended time.Time) {
	ended = j.Ended
	if least := j.Created.Add(s.o.Delay); ended.Before(least) {
		ended = least
	}
	switch {
	case j.State == jobs.Running, s.o.Now().Before(ended):
		return statusInProgress, time.Time{}
	case j.State == jobs.Failed:
		return statusFailed, ended
	default:
		return statusCompleted, ended
	}
}

// newID returns the id of a job that begins now, as in its ARN.
func (s *Service) newID(now time.Time) string {
	return s3export.NewID(now, binary.BigEndian.Uint32(s.o.Random(4)))
}

// rowID returns the id of a job in its row, where later jobs come first. It is its own
// inverse.
func rowID(id string) string {
	const digits = 14
	stamp, salt, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(stamp, 10, 64)
	return fmt.Sprintf("%0*d-%s", digits, int64(99_999_999_999_999)-n, salt)
}

// token returns the token that identifies repetitions of a request.
func token(text *string, request any) (jobs.Token, error) {
	if text == nil {
		return jobs.Token{}, nil
	}
	asked, err := json.Marshal(request, json.Deterministic(true))
	return jobs.Token{Text: *text, Hash: sha256.Sum256(asked)}, err
}

// newToken returns a client token for a request without one.
func (s *Service) newToken() string {
	return uuid.Must(uuid.NewRandomFromReader(bytes.NewReader(s.o.Random(16)))).String()
}

// tableARN returns the ARN of a table.
func (s *Service) tableARN(table string) string {
	return request.ARN{Region: s.o.Region, Account: s.o.Account, Table: table}.String()
}

// resourceOf parses the ARN of a table with a valid name, or of a part of one.
func resourceOf(arn string) (r request.ARN, ok bool) {
	r, ok = request.ParseARN(arn)
	return r, ok && request.IsTableName(r.Table)
}

// Compiled on first use, to keep the start fast.
var jobIDPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{14}-[0-9a-f]{8}$`) })

// words are the codes and texts of a kind of jobs, and the member of requests with its ARN.
type words struct {
	kind, member                                    string
	invalidARN, notFoundCode, notFound, otherRegion string
	mismatchCode, mismatch                          string // of a token that was used for another request
}

// convert converts the errors of package jobs.
func (w *words) convert(err error) error {
	switch {
	case errors.Is(err, jobs.ErrTokenMismatch):
		return awserr.New(w.mismatchCode, "%s", w.mismatch)
	case errors.Is(err, jobs.ErrTooMany):
		return awserr.New(awserr.CodeLimitExceeded, awserr.MsgTooManyJobs, jobs.DefaultMost)
	}
	return err
}

// earlier returns the job that an earlier request with the token created.
func (s *Service) earlier(ctx context.Context, w *words, t jobs.Token) (j jobs.Job, found bool, err error) {
	if t.Text == "" {
		return j, false, nil
	}
	j, found, err = s.o.Store.Jobs.Find(ctx, w.kind, t)
	return j, found, w.convert(err)
}

// create creates a job for a request.
func (s *Service) create(ctx context.Context, w *words, t jobs.Token, now time.Time, of any) (jobs.Job, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return jobs.Job{}, err
	}
	j, err := s.o.Store.Jobs.Create(ctx, jobs.Spec{Kind: w.kind, ID: rowID(s.newID(now)), Request: text, Token: t})
	return j, w.convert(err)
}

// find returns the job whose ARN a request gives.
func (s *Service) find(ctx context.Context, v *request.Validator, w *words, given *string) (jobs.Job, error) {
	v.Required(w.member, given != nil)
	v.Length(w.member, given, minJobARN, maxARN)
	if err := v.Constrained(); err != nil {
		return jobs.Job{}, err
	}
	arn := *given
	r, ok := resourceOf(arn)
	id, isKind := strings.CutPrefix(r.Rest, "/"+w.kind+"/")
	switch {
	case !ok || !isKind || !jobIDPattern().MatchString(id):
		return jobs.Job{}, awserr.Validation("%s", w.invalidARN)
	case r.Account != s.o.Account:
		return jobs.Job{}, awserr.New(awserr.CodeAccessDenied, awserr.MsgAccessDenied)
	case r.Region != s.o.Region:
		return jobs.Job{}, awserr.New(w.notFoundCode, "%s", w.otherRegion)
	}
	j, err := s.o.Store.Jobs.Get(ctx, w.kind, rowID(id))
	if errors.Is(err, jobs.ErrNotFound) || err == nil && tableOf(j) != r.Table {
		return jobs.Job{}, awserr.New(w.notFoundCode, w.notFound, arn)
	}
	return j, err
}

// tableOf returns the table of a job.
func tableOf(j jobs.Job) string {
	var of struct{ Table string }
	_ = json.Unmarshal([]byte(j.Request), &of) // an unreadable job has no table
	return of.Table
}

// page yields the jobs of a kind after a token, the newest first.
func (s *Service) page(ctx context.Context, kind string, after *string) (iter.Seq2[jobs.Job, error], error) {
	from := ""
	if after != nil {
		id, err := base64.RawURLEncoding.DecodeString(*after)
		if err != nil || !jobIDPattern().Match(id) {
			return nil, awserr.Validation(awserr.MsgJobNextToken, *after)
		}
		from = rowID(string(id))
	}
	return s.o.Store.Jobs.All(ctx, kind, from), nil
}

// pageToken returns the token of a page that ends with a job.
func pageToken(j *jobs.Job) string {
	return base64.RawURLEncoding.EncodeToString([]byte(rowID(j.ID)))
}

// bucket opens a bucket for a job.
func (s *Service) bucket(name string, owner *string) (*os.Root, error) {
	root, err := s.o.Buckets.OpenRoot(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && !isFolder(s.o.Buckets, name):
		return nil, &jobs.Failure{Code: awserr.FailureNoSuchBucket, Message: awserr.MsgNoSuchBucket}
	case err != nil:
		return nil, &jobs.Failure{Code: awserr.FailureAccessDenied, Message: fmt.Sprintf(awserr.MsgBucketRefused, err)}
	case owner != nil && *owner != s.o.Account:
		return nil, errors.Join(&jobs.Failure{Code: awserr.FailureAccessDenied, Message: awserr.MsgBucketOwner}, root.Close())
	}
	return root, nil
}

// isFolder reports whether root has a folder.
func isFolder(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.IsDir()
}
