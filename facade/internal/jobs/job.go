package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// State is the state of a job.
type State string

// States of a job. A queued job is Running, too.
const (
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
)

// Job is a job in the form in which its row stores it.
type Job struct {
	Kind string `json:"-"`
	// ID is unique among the jobs of a kind, and determines their order.
	ID string `json:"-"`
	// Request is the request, as JSON in a format that the kind defines.
	Request json.RawMessage `json:"request"`
	State   State           `json:"state"`
	// Created and Ended are times of Options.Now. Ended is zero while the job is Running.
	Created time.Time `json:"created"`
	Ended   time.Time `json:"ended,omitzero"`
	// Progress is the progress and the result of the job, as JSON in a format that the
	// kind defines.
	Progress json.RawMessage `json:"progress,omitempty"`
	// Failure is the reason for the failure if the job is Failed.
	Failure *Failure `json:"failure,omitempty"`
	// Attempts is the number of attempts that ended with an error.
	Attempts int `json:"attempts,omitempty"`

	Owner string `json:"owner,omitempty"` // process that works on the job, or ""
	Beat  uint64 `json:"beat,omitempty"`  // counter that grows while the owner works
}

// Failure is an error that ends a job: if Run returns it, the job is not tried again.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// CodeInternal is the code of a job whose attempts all failed for a reason unknown to its
// kind.
const CodeInternal = "InternalError"

// Errors of a Runner. They may be wrapped, so test for them with errors.Is.
var (
	// ErrNotFound means that the job does not exist.
	ErrNotFound = errors.New("no such job")
	// ErrExists means that the id is already in use.
	ErrExists = errors.New("the job already exists")
	// ErrTooMany means that the kind has reached its limit of jobs.
	ErrTooMany = errors.New("too many jobs of one kind")
	// ErrTokenMismatch means that the token was used for a different request.
	ErrTokenMismatch = errors.New("the token was used for another request")
	// ErrLost means that another process works on the job, or that it has ended or was
	// deleted.
	ErrLost = errors.New("the job no longer belongs to this process")
	// errContended means that the row changed during every attempt to write it.
	errContended = errors.New("too many concurrent changes to one job")
)

// decodeJob decodes a job that json.Marshal encoded.
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
