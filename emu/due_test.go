package emu

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/due"
	"github.com/tabletop-emu/tabletop/engine"
)

// onceWork is work that a resource requests; doing it deletes the resource.
type onceWork struct{ db *engine.DB }

func (w onceWork) Due() ([]due.Item, error) {
	found, err := w.db.Resources("test/")
	var all []due.Item
	for _, f := range found {
		at, parseErr := time.Parse(time.RFC3339, string(f.Value))
		all, err = append(all, due.Item{At: at, Name: f.Name}), errors.Join(err, parseErr)
	}
	return all, err
}

func (w onceWork) Run(ctx context.Context, i due.Item) error {
	if strings.HasSuffix(i.Name, "broken") {
		return errors.New("broken")
	}
	return w.db.UpdateCatalog(ctx, func(tx *engine.CatalogTx) error { return tx.DeleteResource(i.Name) })
}

// The work that a resource requests survives a restart and runs when due.
func TestRunDue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	if _, ok, err := e.srv.NextDue(); ok || err != nil {
		t.Errorf("something is due: %v, %v", ok, err)
	}
	at := start.Add(time.Hour)
	err := e.db.UpdateCatalog(e.ctx(), func(tx *engine.CatalogTx) error {
		return errors.Join(tx.PutResource("test/a", []byte(at.Format(time.RFC3339))), tx.PutResource("test/broken", []byte(at.Format(time.RFC3339))))
	})
	if err != nil {
		t.Fatal(err)
	}
	e = e.restart(dir)
	e.srv.due = due.NewQueue(e.srv.now, onceWork{e.db})
	if next, ok, err := e.srv.NextDue(); err != nil || !ok || !next.Equal(at) {
		t.Errorf("next is %v, %v, %v; want %v", next, ok, err, at)
	}
	for _, left := range []int{2, 1} {
		err := e.srv.RunDue(e.ctx())
		if found, findErr := e.db.Resources("test/"); findErr != nil || len(found) != left || (err != nil) != (left == 1) {
			t.Errorf("at %v: %v, %v, %v; want %d left", e.clock.Now(), found, findErr, err, left)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "emu: test/broken, due at ") {
			t.Errorf("got %v", err)
		}
		e.clock.AdvanceTo(at)
	}
}
