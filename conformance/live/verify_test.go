package live

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/migrate/report"
)

// TestVerify: live verifications beside writes report no difference of equal items, a frozen table is
// proved by the keys that changed, and faults in the target are found.
func TestVerify(t *testing.T) {
	s := setStage(t)
	f := s.follow()
	s.equal("--consistent")
	began, cpu := time.Now(), s.spent
	s.equal()
	quiet, quietCPU := time.Since(began), s.spent-cpu

	m := s.measure(f)
	began, cpu = time.Now(), s.spent
	runs := time.Duration(0)
	s.beside(func() {
		s.equal()
		runs++
	})
	busy, busyCPU := time.Since(began)/runs, (s.spent-cpu)/runs
	m.report("verified meanwhile")
	t.Logf("%d live verifications beside writes: %v of CPU each, %.2f of a quiet one; they take %v, %.2f of a quiet one",
		runs, busyCPU, busyCPU.Seconds()/quietCPU.Seconds(), busy.Round(time.Millisecond), busy.Seconds()/quiet.Seconds())

	s.settle()
	s.equal("--consistent")
	from := s.g.length()
	s.traffic(1, time.Hour, func() {})
	s.settle()
	began = time.Now()
	live := s.equal("--dirty")
	if changed := s.g.changed(from); live.Compared != int64(changed) || live.Unsettled > 0 {
		t.Errorf("%d keys are compared and %d unsettled, but %d changed since the last verification", live.Compared, live.Unsettled, changed)
	}
	t.Logf("%d changed keys were proved in %v", live.Compared, time.Since(began).Round(time.Millisecond))
	s.j.rest()
	s.j.final()
	s.damage()
	f.stop()
}

// settle waits until all writes are applied.
func (s *stage) settle() {
	s.t.Helper()
	s.g.quiet()
	s.applied()
}

// applied waits until all acknowledged writes are applied.
func (s *stage) applied() {
	s.t.Helper()
	last := time.Now().Add(lead)
	for !s.checkpoint(s.t.Context()).Watermark.After(last) && s.t.Context().Err() == nil {
		pause(s.t.Context())
	}
}

// beside writes until body has returned; the full size calls body until its time is over.
func (s *stage) beside(body func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if full() {
			s.paced(time.Hour, func() {})
			cancel()
			return
		}
		for ctx.Err() == nil {
			s.g.give(10)
			pause(ctx)
		}
	}()
	for body(); full() && ctx.Err() == nil; {
		body()
	}
	cancel()
	<-over
}

// equal runs a live verification, which has to find no difference, and no unsettled key that was
// written rarely.
func (s *stage) equal(flags ...string) *report.Live {
	s.t.Helper()
	began := time.Now()
	r, out, code := s.verify(flags...)
	if code != 0 {
		s.t.Fatalf("a live verification ends with exit code %d: %s", code, out)
	}
	live := r.Tables[0].Live
	took := time.Since(began)
	for _, key := range live.UnsettledKeys {
		if n := s.g.writesSince(key, began); full() && float64(n) < took.Seconds()/2 {
			s.t.Errorf("item %s is unsettled, although it was written only %d times in %v", key, n, took)
		}
	}
	return live
}

// verify runs a live verification.
func (s *stage) verify(flags ...string) (*report.Report, string, int) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "report.json")
	out, code := s.run(s.verifyArgs(append(flags, "--max-diffs", "1000", "--report", "json="+file)...)...)
	if code > 1 {
		s.t.Fatalf("exit code %d: %s", code, out)
	}
	return readReport[*report.Report](s.t, file), out, code
}

// writesSince returns how often an item was written since a time.
func (h *history) writesSince(key string, since time.Time) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range slices.Backward(h.done) {
		if a.end.Before(since) {
			break
		}
		if keyJSON(a.number) == key {
			n++
		}
	}
	return n
}

// keyJSON returns the key of an item as DynamoDB's JSON.
func keyJSON(number int) string {
	pk, sk, _ := strings.Cut(keyText(keyOf(number)), " ")
	text, _ := json.Marshal(map[string]map[string]string{"PK": {"S": pk}, "SK": {"S": sk}})
	return string(text)
}

// damage changes rows of the target beside writes, of items that the writers leave alone from then on. A
// verification has to find these faults and no others.
func (s *stage) damage() {
	s.t.Helper()
	items, entries := s.rows.Open(targetName), s.rows.Open(targetName+"__"+indexName)
	const entrySeparator = "\x00\x01"
	pk := func(it item) string { return it["PK"].(*types.AttributeValueMemberS).Value }
	sk := func(it item) string { return it["SK"].(*types.AttributeValueMemberS).Value }
	row := func(it item) string { return map[bool]string{true: "i#", false: "g#"}[sk(it) == "item"] + pk(it) }
	entry := func(it item, g string) string {
		return strings.Join([]string{g, it["gs"].(*types.AttributeValueMemberS).Value, pk(it), "item"}, entrySeparator)
	}
	indexed := func(it item) bool { return it["g"] != nil && it["gs"] != nil }
	any := func(item) bool { return true }
	// copied sets the cells of a row in another one, without the positions of changes.
	copied := func(table *bigtable.Table, from, to string) {
		s.t.Helper()
		was, err := table.ReadRow(s.t.Context(), from, bigtable.RowFilter(bigtable.LatestNFilter(1)))
		if err != nil || len(was) == 0 {
			s.t.Fatalf("row %q has %d families, error %v", from, len(was), err)
		}
		mut := bigtable.NewMutation()
		for family, cells := range was {
			for _, c := range cells {
				if family != "_m" {
					mut.Set(family, strings.TrimPrefix(c.Column, family+":"), c.Timestamp, c.Value)
				}
			}
		}
		s.apply(table, to, mut)
	}
	later := bigtable.Time(time.Now().Add(lead + time.Minute)) // than all cells
	set := func(family, column, value string) func(item) *bigtable.Mutation {
		return func(item) *bigtable.Mutation {
			mut := bigtable.NewMutation()
			mut.Set(family, column, later, []byte(value))
			return mut
		}
	}
	without := func(columns ...string) func(item) *bigtable.Mutation {
		return func(item) *bigtable.Mutation {
			mut := bigtable.NewMutation()
			if len(columns) == 0 {
				mut.DeleteRow()
			}
			for _, column := range columns {
				mut.DeleteCellsInColumn("a", column)
			}
			return mut
		}
	}
	g := func(it item) string { return it["g"].(*types.AttributeValueMemberS).Value }
	const single, part = "single", "group"
	marks := map[string]string{} // by the name of the fault: a part of the key of its item or row
	faults := []struct {
		name, of string
		match    func(item) bool
		plant    func(item) *bigtable.Mutation // of the item's row, or nil
		mark     func(item) string
	}{
		{"another value", single, any, set("a", "data", "planted"), pk},
		{"a missing cell", single, any, without("rev"), pk},
		{"a missing row", single, any, without(), pk},
		{"an unknown cell", single, any, set("a", "planted", "x"), pk},
		{"the text of a number", single, any, set("a", "n", "007"), pk},
		{"another type", single, any, set("_t", "a/data", "B"), pk},
		{"another member", single, any, set("set", "planted", "\x00"), pk},
		{"another element", single, any, set("list", "all", "Splanted"), pk},
		{"another value in a shared row", part, any, func(it item) *bigtable.Mutation {
			return set("p", strings.TrimPrefix(sk(it), "part")+".rev", "-5")(it)
		}, pk},
		{"a missing entry", single, indexed, func(it item) *bigtable.Mutation {
			s.apply(entries, entry(it, g(it)), without()(it))
			return nil
		}, pk},
		{"an entry of another key", single, indexed, func(it item) *bigtable.Mutation {
			copied(entries, entry(it, g(it)), entry(it, "planted"))
			return nil
		}, pk},
		{"an item that the source does not have", single, any, func(it item) *bigtable.Mutation {
			copied(items, row(it), "i#stray")
			return nil
		}, func(item) string { return "stray" }},
	}
	chosen := make([]item, len(faults))
	for i, f := range faults {
		chosen[i] = s.resting(i%2 == 0, func(it item) bool { return f.match(it) && strings.HasPrefix(pk(it), f.of) })
		marks[f.name] = f.mark(chosen[i])
	}
	s.applied() // a later change would mend the fault
	for i, f := range faults {
		if mut := f.plant(chosen[i]); mut != nil {
			s.apply(items, row(chosen[i]), mut)
		}
	}
	var r *report.Report
	s.beside(func() { r, _, _ = s.verify() })
	found := map[string]int{}
	for _, failure := range r.Failures {
		known := false
		for name, mark := range marks {
			if strings.Contains(failure.ItemKey+failure.RowKey, mark) {
				found[name]++
				known = true
			}
		}
		if !known {
			s.t.Errorf("a verification reports a fault that nobody planted: %v", failure)
		}
	}
	for name, mark := range marks {
		if found[name] == 0 {
			s.t.Errorf("a verification does not report %s at %s", name, mark)
		}
	}
	s.t.Logf("%d planted faults, %d differences", len(marks), r.Differences)
}

// apply writes a row of the target.
func (s *stage) apply(table *bigtable.Table, row string, mut *bigtable.Mutation) {
	s.t.Helper()
	if err := table.Apply(s.t.Context(), row, mut); err != nil {
		s.t.Fatalf("row %q: %v", row, err)
	}
}

// resting returns an item that the target has and that nobody writes from now on: one that was written, or
// any.
func (s *stage) resting(written bool, match func(item) bool) item {
	s.t.Helper()
	for range 100_000 {
		number := s.j.rand.IntN(s.g.loaded)
		r := s.g.of(number)
		s.g.mu.Lock()
		fits := !r.resting && (len(r.states) > 1 || !written)
		s.g.mu.Unlock()
		if !fits || !s.g.rest(r) {
			continue
		}
		out, err := s.api.GetItem(s.t.Context(), &dynamodb.GetItemInput{TableName: aws.String(tableName), Key: keyOf(number), ConsistentRead: consistent})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(out.Item) > 0 && match(out.Item) {
			return out.Item
		}
	}
	s.t.Fatal("no item fits")
	return nil
}
