package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// State is the state of a job.
type State string

// The states. A queued job is Running, too.
const (
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
)

// Job is a job as stored in its row.
type Job struct {
	Kind string `json:"-"`
	// ID is unique within the kind, and orders its jobs.
	ID string `json:"-"`
	// Request is the request, JSON in the format of the kind.
	Request json.RawMessage `json:"request"`
	State   State           `json:"state"`
	// Created and Ended are times of Options.Now; Ended is zero while the job is Running.
	Created time.Time `json:"created"`
	Ended   time.Time `json:"ended,omitzero"`
	// Progress is the kind's progress and result, as JSON.
	Progress json.RawMessage `json:"progress,omitempty"`
	// Failure is the reason if the job is Failed.
	Failure *Failure `json:"failure,omitempty"`
	// Attempts counts the attempts that ended with an error.
	Attempts int `json:"attempts,omitempty"`

	Owner string `json:"owner,omitempty"` // the process that works on it, or ""
	Beat  uint64 `json:"beat,omitempty"`  // grows while the owner works
}

// Failure is the final error of a job: if Run returns it, the job ends.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// CodeInternal is the code of a job whose attempts all failed for a reason that its kind does
// not know.
const CodeInternal = "InternalError"

// Errors of a Runner. They are wrapped: test with errors.Is.
var (
	// ErrNotFound: the job does not exist.
	ErrNotFound = errors.New("no such job")
	// ErrExists: the id is in use.
	ErrExists = errors.New("the job already exists")
	// ErrTooMany: the limit of the kind's jobs is reached.
	ErrTooMany = errors.New("too many jobs of one kind")
	// ErrTokenMismatch: the token was used for another request.
	ErrTokenMismatch = errors.New("the token was used for another request")
	// ErrLost: another process works on the job, or it has ended or was deleted.
	ErrLost = errors.New("the job no longer belongs to this process")
	// errContended: the row changed during every attempt to write it.
	errContended = errors.New("too many concurrent changes of one job")
)

// decodeJob is the inverse of json.Marshal.
func decodeJob(kind, id string, text []byte) (Job, error) {
	j := Job{Kind: kind, ID: id}
	if err := json.Unmarshal(text, &j); err != nil {
		return j, fmt.Errorf("job %s of kind %s: %w", id, kind, err)
	}
	if j.State != Running && j.State != Done && j.State != Failed {
		return j, fmt.Errorf("job %s of kind %s has the unknown state %q", id, kind, j.State)
	}
	return j, nil
}
