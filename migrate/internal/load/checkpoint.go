package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// checkpoint is the progress of a load, kept in a file.
type checkpoint struct {
	path  string // "": in memory only
	state CheckpointState
	lost  []string // warnings about tables that lack the recorded rows
}

// CheckpointState is the content of a checkpoint file.
type CheckpointState struct {
	// Load is a hash of the source, the mapping and the target.
	Load string `json:"load"`
	// Tables holds the progress of each table, in order.
	Tables []checkpointTable `json:"tables"`
}

type checkpointTable struct {
	Items int64 `json:"items"` // written, from the first on
	// Retry lists the numbers of the items that Bigtable refused.
	Retry []int64 `json:"retry,omitempty"`
	// Row is the row of the last accepted item. If it is missing, the other rows are
	// missing too.
	Row []byte `json:"row,omitempty"`
}

// CheckCheckpoint returns an error if the checkpoint belongs to another load.
func CheckCheckpoint(jobs []*table.Job) error {
	_, err := openCheckpoint(jobs)
	return err
}

// newCheckpoint returns the checkpoint of one table, without a file.
func newCheckpoint() *checkpoint {
	return &checkpoint{state: CheckpointState{Tables: make([]checkpointTable, 1)}}
}

// openCheckpoint reads the file, if it exists.
func openCheckpoint(jobs []*table.Job) (*checkpoint, error) {
	path := jobs[0].Options.Checkpoint
	c := &checkpoint{path: path, state: CheckpointState{Load: identity(jobs), Tables: make([]checkpointTable, len(jobs))}}
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	var found CheckpointState
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: path}, source.JSONCause(err), "the file is not the checkpoint of a load: name another file, or remove this one")
	}
	if found.Load != c.state.Load || len(found.Tables) != len(jobs) {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: path}, nil, "the checkpoint belongs to another load: the source, the mapping or the target has changed since; remove it to load from the start")
	}
	c.state = found
	return c, nil
}

// identity returns a hash of the source, the mapping and the target of a load.
func identity(jobs []*table.Job) string {
	o := jobs[0].Options
	text := fmt.Appendf(nil, "%q %q %q\n", o.Target, o.Project, o.Instance)
	for _, j := range jobs {
		text = fmt.Appendln(text, j.Targets(), j.Wanted.Items, j.Wanted.Cells, j.Refused)
		for _, x := range j.Indexes {
			text = fmt.Appendln(text, j.Wanted.Index[x.TargetTable()])
		}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// begin returns the progress of a table. It starts over if the load has just created one of
// w's tables, or if the table lacks the recorded row, as after a restart of a Bigtable in
// memory.
func (c *checkpoint) begin(ctx context.Context, w *writer, index int) (checkpointTable, error) {
	done := &c.state.Tables[index]
	if done.Items == 0 {
		return *done, nil
	}
	held := !slices.ContainsFunc(w.tables, func(t writeTable) bool { return !t.found })
	if held && len(done.Row) > 0 {
		var err error
		if held, err = holds(ctx, w.b, w.tables[0].ID, done.Row); err != nil {
			return *done, err
		}
	}
	if !held {
		c.lost = append(c.lost, fmt.Sprintf("table %s lacks rows that checkpoint %s records as written, %s: loading from the start",
			w.tables[0].ID, c.path, phrase.Counted(done.Items, "item")))
		*done = checkpointTable{}
		if err := c.save(); err != nil { // before new rows confirm the old record
			return *done, err
		}
	}
	start := *done
	start.Retry = slices.Clone(done.Retry)
	return start, nil
}

// holds reports whether a table has a row.
func holds(ctx context.Context, b *table.Bigtable, table string, row []byte) (there bool, err error) {
	for _, err := range b.Rows(ctx, btclient.Read{Table: table, Keys: [][]byte{row}, Filter: btclient.FirstCells(1)}) {
		if err != nil {
			return false, err
		}
		there = true
	}
	return there, nil
}

// save replaces the file atomically.
func (c *checkpoint) save() error {
	if c.path == "" {
		return nil
	}
	text, err := json.Marshal(c.state)
	if err == nil {
		err = parts.WriteWhole(c.path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	return nil
}

// remove deletes the checkpoint of a complete load.
func (c *checkpoint) remove() error {
	if c.path == "" {
		return nil
	}
	if err := os.Remove(c.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the checkpoint of a complete load: %w", err)
	}
	return nil
}

// wants reports whether an item of a table has not been written yet.
func (t checkpointTable) wants(n int64) bool {
	if n >= t.Items {
		return true
	}
	_, retry := slices.BinarySearch(t.Retry, n)
	return retry
}
