package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

const (
	// RowPrefix is the prefix of the rows of jobs in the catalog. The kind, "/" and the
	// id follow.
	RowPrefix = "j/"
	// maxChanges limits the attempts to change a row that others keep changing.
	maxChanges = 64
	// microsPerMilli is the granularity of cell timestamps.
	microsPerMilli = 1000
)

// The columns of a row: a text, the version that guards it, and for a job its state, to find
// unfinished jobs.
var (
	textQualifier    = []byte("text")
	versionQualifier = []byte("version")
	stateQualifier   = []byte("state")
)

func jobRow(kind, id string) []byte { return []byte(RowPrefix + kind + "/" + id) }

// kindOf is the inverse of jobRow.
func kindOf(row []byte) (kind, id string, ok bool) {
	rest, ok := strings.CutPrefix(string(row), RowPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// row is a row as read; its fields are nil if it does not exist.
type row struct{ text, version []byte }

func textOf(cells []layout.Cell) (r row) {
	for _, c := range cells {
		switch {
		case bytes.Equal(c.Qualifier, textQualifier):
			r.text = c.Value
		case bytes.Equal(c.Qualifier, versionQualifier):
			r.version = c.Value
		}
	}
	return r
}

func (r *Runner) read(ctx context.Context, family string, key []byte) (row, error) {
	found, err := r.o.Client.ReadRow(ctx, r.o.Table, key, btclient.Chain(btclient.OfFamily(family), btclient.Newest(1)))
	return textOf(found.Cells), err
}

// write replaces the text of a row that has the given version, which is nil if the row
// does not exist. A nil text deletes the row. It returns the new version; ok reports
// whether it wrote.
func (r *Runner) write(ctx context.Context, family string, key, version, text []byte, state State) (next []byte, ok bool, err error) {
	var set []*btpb.Mutation
	micros := r.o.Now().UnixMilli() * microsPerMilli
	if text != nil {
		next = r.o.NewToken()
		set = append(set, btclient.SetCell(family, textQualifier, micros, text))
		if state != "" {
			set = append(set, btclient.SetCell(family, stateQualifier, micros, []byte(state)))
		}
	}
	ok, err = r.o.Client.Replace(ctx, r.o.Table, key, btclient.Guard{Family: family, Qualifier: versionQualifier, Was: version}, next, micros, set...)
	return next, ok, err
}

func (r *Runner) writeJob(ctx context.Context, j *Job, version []byte) (next []byte, ok bool, err error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, false, err
	}
	return r.write(ctx, r.o.Family, jobRow(j.Kind, j.ID), version, text, j.State)
}

// readJob returns a job and the version of its row. Errors: ErrNotFound.
func (r *Runner) readJob(ctx context.Context, kind, id string) (Job, []byte, error) {
	there, err := r.read(ctx, r.o.Family, jobRow(kind, id))
	if err != nil {
		return Job{}, nil, err
	}
	if there.text == nil {
		return Job{}, nil, fmt.Errorf("%w: %s of kind %s", ErrNotFound, id, kind)
	}
	j, err := decodeJob(kind, id, there.text)
	return j, there.version, err
}

// change changes a job by fn, which may be called several times; an error of fn ends change.
// It returns the changed job and its version.
func (r *Runner) change(ctx context.Context, kind, id string, fn func(*Job) error) (Job, []byte, error) {
	for range maxChanges {
		j, version, err := r.readJob(ctx, kind, id)
		if err == nil {
			err = fn(&j)
		}
		if err != nil {
			return j, nil, err
		}
		next, ok, err := r.writeJob(ctx, &j, version)
		if ok || err != nil {
			return j, next, err
		}
	}
	return Job{}, nil, fmt.Errorf("%w: %s of kind %s", errContended, id, kind)
}

// Get returns a job. It returns ErrNotFound if the job does not exist.
func (r *Runner) Get(ctx context.Context, kind, id string) (Job, error) {
	j, _, err := r.readJob(ctx, kind, id)
	return j, err
}

// All yields the jobs of a kind whose ids are greater than after, in ascending order. It
// stops after an error.
func (r *Runner) All(ctx context.Context, kind, after string) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		start := jobRow(kind, after)
		if after != "" {
			start = append(start, 0)
		}
		read := btclient.Read{
			Table: r.o.Table, Filter: btclient.Chain(btclient.OfColumn(r.o.Family, textQualifier), btclient.Newest(1)),
			Spans: []layout.Span{{Start: start, End: cells.PrefixEnd(jobRow(kind, ""))}},
		}
		for found, err := range r.o.Client.Read(ctx, read) {
			var j Job
			if err == nil {
				_, id, _ := kindOf(found.Key)
				j, err = decodeJob(kind, id, textOf(found.Cells).text)
			}
			if !yield(j, err) || err != nil {
				return
			}
		}
	}
}

// stateOfJob is the state of a job and the time since which it has it.
type stateOfJob struct {
	kind, id string
	state    State
	since    time.Time
}

// states yields the states of all jobs. An error ends it.
func (r *Runner) states(ctx context.Context) iter.Seq2[stateOfJob, error] {
	return func(yield func(stateOfJob, error) bool) {
		prefix := []byte(RowPrefix)
		read := btclient.Read{
			Table: r.o.Table, Spans: []layout.Span{cells.Prefixed(prefix)},
			Filter: btclient.Chain(btclient.OfColumn(r.o.Family, stateQualifier), btclient.Newest(1)),
		}
		for found, err := range r.o.Client.Read(ctx, read) {
			if err != nil {
				yield(stateOfJob{}, err)
				return
			}
			kind, id, ok := kindOf(found.Key)
			for _, c := range found.Cells {
				if ok && !yield(stateOfJob{kind, id, State(c.Value), time.UnixMicro(c.Timestamp)}, nil) {
					return
				}
			}
		}
	}
}

// count returns the number of jobs of a kind, at most most.
func (r *Runner) count(ctx context.Context, kind string, most int) (n int, err error) {
	read := btclient.Read{
		Table: r.o.Table, Limit: int64(most), Spans: []layout.Span{cells.Prefixed(jobRow(kind, ""))},
		Filter: btclient.Chain(btclient.OfColumn(r.o.Family, stateQualifier), btclient.Newest(1)),
	}
	for _, err := range r.o.Client.Read(ctx, read) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
