package follow_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// A follower looks once a minute whether the target is still as the mapping describes it, and ends with the remedy if it
// is not: a rule that collects cells, a missing family or table, another mapping, or other writers.
func TestFollow_TargetChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, l *live)
		want   []string // "" if it continues
	}{
		"a family more": {func(t *testing.T, l *live) {
			t.Helper()
			_, err := l.store().B.EnsureTable(t.Context(), "t", []layout.Family{{Name: "more"}}, nil)
			must(t, err)
		}, nil},
		"an age rule": {func(t *testing.T, l *live) {
			t.Helper()
			must(t, l.store().B.SetGC(t.Context(), "t", layout.Family{Name: "a", GC: layout.GC{Versions: 1, MaxAge: time.Hour}}))
		}, []string{"the garbage-collection rule of family a of Bigtable table t was changed to {", "but the mapping declares {", "set that rule, follow again", "verify --live --consistent"}},
		"no rule": {func(t *testing.T, l *live) {
			t.Helper()
			must(t, l.store().B.SetGC(t.Context(), "t__G", layout.Family{Name: "a"}))
		}, []string{"of family a of Bigtable table t__G was changed to {"}},
		"a rule of positions": {func(t *testing.T, l *live) {
			t.Helper()
			must(t, l.store().B.SetGC(t.Context(), "t", layout.Family{Name: lens.FamilyPosition, GC: layout.GC{Versions: 1, MaxAge: time.Hour}}))
		}, []string{"of family _m of Bigtable table t was changed to {"}},
		"a family less": {func(t *testing.T, l *live) {
			t.Helper()
			must(t, l.store().B.DropFamily(t.Context(), "t", "_t"))
		}, []string{"family _t of Bigtable table t was deleted while it was followed", "load an export again, into another instance"}},
		"a table less": {func(t *testing.T, l *live) {
			t.Helper()
			must(t, l.store().B.DropTable(t.Context(), "t__G"))
		}, []string{"Bigtable table t__G was deleted while it was followed", "load an export again, into another instance"}},
		"no note of the load": {func(t *testing.T, l *live) {
			t.Helper()
			l.mutate(t, layout.SchemaTable, string(layout.SchemaRowPrefix("t")), btclient.DeleteRow())
		}, []string{"its rows in table _migration_schema were deleted while it was followed", "load an export again"}},
		"another mapping": {func(t *testing.T, l *live) {
			t.Helper()
			l.remap(t)
		}, []string{"its mapping in table _migration_schema was changed while it was followed, and rows of both mappings would mix: "}},
		"writes of an endpoint": {func(t *testing.T, l *live) {
			t.Helper()
			l.mutate(t, layout.SchemaTable, string(layout.SchemaRowPrefix("t")), btclient.SetCell(layout.SchemaFamily, []byte(loadnote.WrittenColumn), 1000, loadnote.MomentValue(l.now())))
		}, []string{"a DynamoDB endpoint has written since the load"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startEarly(t, 3)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			o := l.options("one")
			l.step = 2 * time.Second // nothing else renews a lease
			o.Sleep = l.sleep(nil)
			began, changed := l.now(), time.Time{}
			late := 0
			o.Report = func(migrate.FollowStatus) {
				switch {
				case changed.IsZero() && l.now().Sub(began) > 20*time.Second:
					changed = l.now()
					c.change(t, l)
				case !changed.IsZero() && l.now().Sub(changed) > time.Minute:
					if late++; late > 1 { // the look comes after the report
						stop()
					}
				}
			}
			err := migrate.Follow(ctx, l.target, o)
			if len(c.want) == 0 {
				if ctx.Err() == nil {
					t.Errorf("the follower ends with %v", err)
				}
				return
			}
			for _, want := range c.want {
				if source.DamageOf(err) == "" || !strings.Contains(err.Error(), want) {
					t.Errorf("the follower ends with %v, want %q", err, want)
				}
			}
		})
	}
}

// countedSaves counts the checkpoints that a follower writes.
type countedSaves struct {
	grpc.ClientConnInterface
	saves atomic.Int64
}

func (c *countedSaves) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	if r, ok := in.(*btpb.CheckAndMutateRowRequest); ok && bytes.Equal(r.GetRowKey(), ms.CheckpointRow("t", "stream")) && len(r.GetTrueMutations()) > 0 {
		c.saves.Add(1)
	}
	return c.ClientConnInterface.Invoke(ctx, method, in, out, opts...)
}

// A follower of a quiet table writes one checkpoint for each report, which come once a second. While it applies changes
// there are more.
func TestFollow_Saves(t *testing.T) {
	t.Parallel()
	l := create(t, followedTable)
	r := rand.New(rand.NewPCG(17, 1))
	l.env.Advance(5 * time.Minute)
	l.write(t, r)
	l.load(t)
	counted := &countedSaves{ClientConnInterface: l.target}
	between := make(chan int64) // checkpoints without a report, so far
	o, reports := l.options("one"), int64(0)
	o.Report = func(migrate.FollowStatus) {
		reports++
		select {
		case between <- counted.saves.Load() - reports:
		case <-t.Context().Done():
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- migrate.Follow(ctx, counted, o) }()
	for phase := ""; phase != "FOLLOWING"; <-between {
		all, err := migrate.Status(t.Context(), l.target, l.common())
		must(t, err)
		if len(all) > 0 {
			phase = all[0].Phase
		}
	}
	quiet := <-between
	for range 20 {
		if n := <-between; n != quiet {
			t.Fatalf("%d checkpoints of a quiet table are not reported, want %d", n, quiet)
		}
	}
	for n := quiet; n == quiet; n = <-between {
		l.write(t, r)
	}
	cancel()
	for {
		select {
		case <-between:
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the follower ends with %v", err)
			}
			return
		}
	}
}
