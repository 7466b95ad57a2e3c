package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// State is how far a job is.
type State string

// The states. A job that waits for its turn is Running too.
const (
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
)

// Job is a job as its row has it.
type Job struct {
	Kind string `json:"-"`
	// ID is unique among those of the kind, and orders them.
	ID string `json:"-"`
	// Request is what was asked for, JSON text of the kind's own.
	Request json.RawMessage `json:"request"`
	State   State           `json:"state"`
	// Created and Ended are times of Options.Now; Ended is zero while it is Running.
	Created time.Time `json:"created"`
	Ended   time.Time `json:"ended,omitzero"`
	// Progress is what the kind keeps of its work, and what came of it: JSON text.
	Progress json.RawMessage `json:"progress,omitempty"`
	// Failure is why it is Failed.
	Failure *Failure `json:"failure,omitempty"`
	// Attempts counts those that ended with an error.
	Attempts int `json:"attempts,omitempty"`

	Owner string `json:"owner,omitempty"` // the process that works on it, "" for none
	Beat  uint64 `json:"beat,omitempty"`  // counts while it does
}

// Failure is why a job can never be done: returned by Run, it ends the job.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// CodeInternal is the code of a job that failed again and again for a reason that its
// kind does not know.
const CodeInternal = "InternalError"

// Errors of a Runner. They come wrapped: test with errors.Is.
var (
	// ErrNotFound: there is no such job.
	ErrNotFound = errors.New("no such job")
	// ErrExists: there is one of that id.
	ErrExists = errors.New("there is such a job")
	// ErrTooMany: there are as many jobs of the kind as there may be.
	ErrTooMany = errors.New("too many jobs of one kind")
	// ErrTokenMismatch: the token was used for another request.
	ErrTokenMismatch = errors.New("the token was used for another request")
	// ErrLost: another process works on the job, or it has ended or was deleted.
	ErrLost = errors.New("the job is not this process's any more")
	// errContended: a row changed under every attempt to write it.
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
