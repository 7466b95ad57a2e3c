package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
)

// RefusedChange is the error of a run that a change has ended.
type RefusedChange struct {
	Table string // the DynamoDB table
	Key   string // of the item, in DynamoDB's JSON
	Err   error
}

// Error names the item and the cause.
func (e *RefusedChange) Error() string {
	return fmt.Sprintf("table %s: the change of item %s cannot be applied; the changes before it are, and --dead-letter keeps such changes: %v", e.Table, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *RefusedChange) Unwrap() error { return e.Err }

// letter is a line of the dead letters.
type letter struct {
	Table string          `json:"table"`
	Key   json.RawMessage `json:"key"`
	Item  json.RawMessage `json:"item,omitempty"` // absent if the change deletes it
	Error string          `json:"error"`
}

// refuse keeps a change that cannot be applied as a dead letter, or ends the run.
func (f *follower) refuse(ctx context.Context, c apply.Change, err error) error {
	if f.unordered != "" { // a later change may have been applied, or refused, before
		if later, err := f.superseded(ctx, c); later || err != nil {
			return err
		}
	}
	if f.DeadLetter == nil {
		return &RefusedChange{Table: f.Mapping.SourceTable(), Key: string(attr.AppendItemJSON(nil, c.Key)), Err: err}
	}
	id, key := f.Mapping.Key().ID(c.Key), attr.AppendItemJSON(nil, c.Key)
	l := ms.Letter{Key: string(key), Reason: err.Error(), At: f.Now(), Position: c.Position.Append(nil)}
	if why, ok := errors.AsType[*maperr.Error](err); ok {
		l.Code = string(why.Code)
		l.Mapping = f.Mapping.RulePosition(why.Rule)
	}
	line := letter{Table: f.Mapping.SourceTable(), Key: key, Error: err.Error()}
	if c.Now != nil {
		line.Item = attr.AppendItemJSON(nil, c.Now)
		l.Record = string(line.Item)
	}
	if err := f.leasedStore().SaveLetter(ctx, id, l); err != nil {
		return err
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.letters[id] = c.Position
	_, err = f.DeadLetter.Write(append(text, '\n'))
	return err
}

// superseded reports whether a later change of an item was applied, or is a dead letter.
func (f *follower) superseded(ctx context.Context, c apply.Change) (bool, error) {
	id := f.Mapping.Key().ID(c.Key)
	f.mu.Lock()
	last, open := f.letters[id]
	f.mu.Unlock()
	if open && last.Compare(c.Position) > 0 {
		return true, nil
	}
	at, err := f.Mapping.Locate(c.Key)
	if err != nil {
		return false, nil //nolint:nilerr // the item has no row
	}
	row, err := f.B.ReadRow(ctx, f.store.Table, at.Row, btclient.Chain(btclient.OfColumn(lens.FamilyPosition, id[:]), btclient.Newest(1)))
	if err != nil || len(row.Cells) == 0 {
		return false, err
	}
	stored, err := apply.ParseStamp(row.Cells[0].Value)
	return err == nil && stored.Position.Compare(c.Position) > 0, err
}

// forgive deletes the dead letters of items whose later changes were applied.
func (f *follower) forgive(ctx context.Context, changes []apply.Change, refused map[attr.ItemID]bool) error {
	applied := map[attr.ItemID]apply.Position{}
	f.mu.Lock()
	for _, c := range changes {
		id := f.Mapping.Key().ID(c.Key)
		if last, open := f.letters[id]; open && c.Position.Compare(last) >= 0 && !refused[id] {
			applied[id] = c.Position // the last one is the highest
		}
	}
	f.mu.Unlock()
	for id, position := range applied {
		if err := f.leasedStore().DropLetter(ctx, id, position.Append(nil)); err != nil {
			return err
		}
		f.mu.Lock()
		delete(f.letters, id)
		f.mu.Unlock()
	}
	return nil
}
