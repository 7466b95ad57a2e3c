package kinesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

const testARN = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"

// testSource is a log in memory.
type testSource struct {
	mu      sync.Mutex
	table   *tabledef.Table
	entries map[uint16][]changelog.Entry // by slot, in order
	floor   uint64
	grown   chan struct{}
	found   []bool
}

func newTestSource(slots int) *testSource {
	return &testSource{
		table: &tabledef.Table{
			Name: "orders", ID: "id", Log: &tabledef.Log{Shards: tabledef.Shards{Slots: []int{slots}}},
			Kinesis: []tabledef.KinesisDestination{{StreamARN: testARN, State: tabledef.KinesisActive, From: 1}},
		},
		entries: map[uint16][]changelog.Entry{}, floor: 1, grown: make(chan struct{}),
	}
}

func (s *testSource) Table(context.Context) (*tabledef.Table, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil {
		return nil, nil
	}
	table := *s.table
	table.Kinesis = slices.Clone(s.table.Kinesis)
	return &table, nil
}

func (s *testSource) Found(_ context.Context, there bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, there)
	Found(s.table, testARN, 1, there)
	return nil
}

func (s *testSource) Floor(context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.floor, nil
}

func (s *testSource) Read(_ context.Context, _ *tabledef.Log, slot uint16, from changelog.Position, before uint64, limit int) iter.Seq2[changelog.Entry, error] {
	s.mu.Lock()
	entries := slices.Clone(s.entries[slot])
	s.mu.Unlock()
	return func(yield func(changelog.Entry, error) bool) {
		for _, e := range entries {
			if e.At.Compare(from) < 0 || e.At.Sequence >= before {
				continue
			}
			if limit--; limit < 0 || !yield(e, nil) {
				return
			}
		}
	}
}

func (s *testSource) Grown() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grown
}

// add adds a change of an item at a number, and makes it readable.
func (s *testSource) add(at uint64, item string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := uint16(0)
	for _, c := range item {
		h += uint16(c)
	}
	slot := h % uint16(s.table.Log.Shards.Slots[0])
	e := changelog.Entry{At: changelog.Position{Sequence: at}, Record: changelog.NewRecord("NEW_AND_OLD_IMAGES",
		attr.Item{"id": {Type: attr.S, Str: item}}, nil, attr.Item{"id": {Type: attr.S, Str: item}, "n": attr.Int(int64(n))})}
	s.entries[slot] = append(s.entries[slot], e)
	slices.SortFunc(s.entries[slot], func(a, b changelog.Entry) int { return a.At.Compare(b.At) })
	s.floor = max(s.floor, at+1)
	close(s.grown)
	s.grown = make(chan struct{})
}

// end ends the destination after all records.
func (s *testSource) end(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.table.Kinesis[0]
	d.State, d.Until, d.Ended = tabledef.KinesisDisabled, s.floor, now
	close(s.grown)
	s.grown = make(chan struct{})
}

// testSink accepts records as fail decides.
type testSink struct {
	mu   sync.Mutex
	got  []string // data, in order
	fail func(records []Record) (taken []bool, err error)
	has  bool
}

func (s *testSink) Has(context.Context, string) (bool, error) { return s.has, nil }

func (s *testSink) Put(_ context.Context, stream string, records []Record) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stream != "changes" {
		return nil, fmt.Errorf("stream %q", stream)
	}
	keys, size := map[string]bool{}, 0
	for _, r := range records {
		if keys[r.PartitionKey] {
			return nil, errors.New("two records of one key in a call")
		}
		keys[r.PartitionKey] = true
		size += len(r.Data) + len(r.PartitionKey)
	}
	if len(records) > MaxPutRecords || size > MaxPutBytes && len(records) > 1 {
		return nil, fmt.Errorf("%d records of %d bytes in a call", len(records), size)
	}
	taken := slices.Repeat([]bool{true}, len(records))
	var err error
	if s.fail != nil {
		taken, err = s.fail(records)
	}
	for i, r := range records {
		if i < len(taken) && taken[i] {
			s.got = append(s.got, string(r.Data))
		}
	}
	return taken, err
}

// testDelivery returns a delivery whose pauses end at once.
func testDelivery(t interface{ Cleanup(func()) }, source Source, sink Sink) (*Delivery, *[]Checkpoint) {
	wall := clock.NewFrozen(time.Unix(1000, 0))
	over := make(chan struct{})
	var pump sync.WaitGroup
	pump.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				wall.Advance(time.Second)
				runtime.Gosched()
			}
		}
	})
	t.Cleanup(func() { close(over); pump.Wait() })
	var saved []Checkpoint
	return &Delivery{
		Target: Target{StreamARN: testARN, Table: "orders", TableID: "id", Region: "us-east-1", From: 1},
		Source: source, Sink: sink, Now: func() time.Time { return time.Unix(1000, 0) }, Wall: wall, Logger: slog.New(slog.DiscardHandler),
		Changed: make(chan struct{}), Save: func(_ context.Context, c Checkpoint) error { saved = append(saved, c); return nil },
	}, &saved
}

// checkGot checks that the counted changes of each item arrived, with their first copies in
// order.
func checkGot(t rapid.TB, got []string, counts map[string]int) {
	t.Helper()
	next := map[string]int{}
	for _, data := range got {
		item := between(data, `"Keys":{"id":{"S":"`, `"`)
		n := 0
		_, _ = fmt.Sscan(between(data, `"n":{"N":"`, `"`), &n)
		if n > next[item] {
			t.Fatalf("change %d of %s comes before change %d", n, item, next[item])
		}
		next[item] = max(next[item], n+1)
	}
	if !maps.Equal(next, counts) {
		t.Fatalf("got %v, want %v", next, counts)
	}
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

// Despite failed calls, lost answers, rejected records and ended processes, each change
// arrives, those of an item in order.
func TestDelivery_AtLeastOnceInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, property.First(25, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) //nolint:gosec // of a test
		source := newTestSource(rapid.SampledFrom([]int{1, 2, 7}).Draw(t, "slots"))
		counts := map[string]int{}
		for i := range rapid.IntRange(0, 500).Draw(t, "changes") {
			item := fmt.Sprint("item", min(r.IntN(40), r.IntN(40)))
			source.add(uint64(10+i), item, counts[item])
			counts[item]++
		}
		source.end(time.Unix(1000, 0))
		ctx, cancel := context.WithCancel(context.Background())
		ends := 5
		sink := &testSink{fail: func(records []Record) ([]bool, error) {
			taken := make([]bool, len(records))
			for i := range taken {
				taken[i] = r.IntN(5) > 0
			}
			switch r.IntN(6) {
			case 0:
				return nil, errors.New("there is no answer")
			case 1:
				return taken, errors.New("the answer is lost")
			case 2:
				return taken, nil
			case 3:
				if ends--; ends > 0 {
					cancel() // the process ends here or there
				}
			}
			return slices.Repeat([]bool{true}, len(records)), nil
		}}
		var from Checkpoint
		for {
			cleanup := &cleanups{}
			d, saved := testDelivery(cleanup, source, sink)
			err := d.Run(ctx, from)
			cleanup.run()
			if len(*saved) > 0 {
				from = (*saved)[len(*saved)-1]
			}
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			ctx, cancel = context.WithCancel(context.Background())
			_ = cancel
		}
		cancel()
		checkGot(t, sink.got, counts)
	}))
}

type cleanups struct{ all []func() }

func (c *cleanups) Cleanup(f func()) { c.all = append(c.all, f) }
func (c *cleanups) run() {
	for _, f := range c.all {
		f()
	}
}

// A record that the stream always refuses does not block the others.
func TestDelivery_Refused(t *testing.T) {
	t.Parallel()
	source := newTestSource(1)
	for i, item := range []string{"a", "bad", "c", "a"} {
		source.add(uint64(10+i), item, i/3)
	}
	source.end(time.Unix(1000, 0))
	sink := &testSink{fail: func(records []Record) ([]bool, error) {
		for _, r := range records {
			if strings.Contains(string(r.Data), `"bad"`) {
				return nil, fmt.Errorf("%w: too large", ErrRefused)
			}
		}
		return slices.Repeat([]bool{true}, len(records)), nil
	}}
	d, _ := testDelivery(t, source, sink)
	if err := d.Run(t.Context(), Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	checkGot(t, sink.got, map[string]int{"a": 2, "c": 1})
}

// Large records take several calls; only a page of them is in memory at a time.
func TestDelivery_Large(t *testing.T) {
	t.Parallel()
	source := newTestSource(1)
	text := strings.Repeat("x", 700_000)
	for i := range 30 {
		e := changelog.Entry{At: changelog.Position{Sequence: uint64(10 + i)}, Record: changelog.NewRecord("NEW_AND_OLD_IMAGES",
			attr.Item{"id": attr.Int(int64(i))}, nil, attr.Item{"text": {Type: attr.S, Str: text}})}
		source.entries[0] = append(source.entries[0], e)
	}
	source.floor = 100
	source.end(time.Unix(1000, 0))
	sink := &testSink{}
	d, saved := testDelivery(t, source, sink)
	if err := d.Run(t.Context(), Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	if len(sink.got) != 30 || len(*saved) < 4 {
		t.Errorf("%d records with %d checkpoints", len(sink.got), len(*saved))
	}
}

// A missing stream ends the delivery, and so does a deleted destination or table, or the loss
// of its records in the log.
func TestDelivery_Ends(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *testSource){
		"no stream":      func(s *testSource) { s.table.Kinesis[0].Unseen = true },
		"no table":       func(s *testSource) { s.table = nil },
		"another table":  func(s *testSource) { s.table.ID = "other" },
		"no destination": func(s *testSource) { s.table.Kinesis = nil },
		"enabled again":  func(s *testSource) { s.table.Kinesis[0].From = 5 },
		"failed":         func(s *testSource) { s.table.Kinesis[0].State = tabledef.KinesisFailed },
		"a day ago":      func(s *testSource) { s.end(time.Unix(1000, 0).Add(-24 * time.Hour)) },
	} {
		source := newTestSource(1)
		source.add(10, "a", 0)
		change(source)
		sink := &testSink{}
		d, _ := testDelivery(t, source, sink)
		if err := d.Run(t.Context(), Checkpoint{}); err != nil || len(sink.got) != 0 {
			t.Errorf("%s: %v, %d records", name, err, len(sink.got))
		}
		if name == "no stream" && (!slices.Equal(source.found, []bool{false}) || Status(&source.table.Kinesis[0], time.Unix(1000, 0)) != tabledef.KinesisFailed) {
			t.Errorf("%s: %+v", name, source.table.Kinesis)
		}
	}
}

func TestForm_Record(t *testing.T) {
	t.Parallel()
	key := attr.Item{"id": {Type: attr.S, Str: "é"}}
	e := changelog.Entry{At: changelog.Position{Sequence: 1_234_567_891_234}, Record: changelog.NewRecord("NEW_AND_OLD_IMAGES", key, key, nil)}
	f := Form{Region: "us-east-1", Table: "orders", TableID: "id"}
	got := f.Record(&e)
	id := between(string(got.Data), `"eventID":"`, `"`)
	want := `{"awsRegion":"us-east-1","eventID":"` + id + `","eventName":"REMOVE","userIdentity":null,"recordFormat":"application/json","tableName":"orders",` +
		`"dynamodb":{"ApproximateCreationDateTime":1234567,"Keys":{"id":{"S":"é"}},"OldImage":{"id":{"S":"é"}},"SizeBytes":8},"eventSource":"aws:dynamodb"}`
	if string(got.Data) != want || len(got.PartitionKey) != 32 || len(id) != 36 {
		t.Errorf("got %s with key %s, want %s", got.Data, got.PartitionKey, want)
	}
	f.Precision, e.Expired = Microsecond, true
	if again := string(f.Record(&e).Data); !strings.Contains(again, `"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}`) ||
		!strings.Contains(again, `"ApproximateCreationDateTime":1234567891,"ApproximateCreationDateTimePrecision":"MICROSECOND"`) || !strings.Contains(again, id) {
		t.Error(again)
	}
}

func TestStreamName(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]string{
		testARN: "changes",
		"arn:aws-cn:kinesis:us-east-1:123456789012:stream/a.b-c_9":            "a.b-c_9",
		"arn:aws:kinesis:eu-west-1:123456789012:stream/changes":               "",
		"arn:aws:dynamodb:us-east-1:123456789012:table/changes":               "",
		"arn:aws:kinesis:us-east-1:123456789012:stream/../changes":            "",
		"arn:aws:kinesis:us-east-1:123456789012:stream/..":                    "",
		"arn:aws:kinesis:us-east-1:123456789012:stream/":                      "",
		"arn:aws:kinesis:us-east-1:123456789012:" + strings.Repeat("x", 2000): "",
		"": "",
		"arn:aws:kinesis:us-east-1:1:stream/" + strings.Repeat("x", 129): "",
	} {
		if got, ok := StreamName(arn, "us-east-1"); got != want && ok || ok != (want != "") {
			t.Errorf("%.80s: %q, %v; want %q", arn, got, ok, want)
		}
	}
}

// An incomplete line of an ended process is removed, complete lines stay.
func TestDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "streams")
	put := func(data ...string) {
		t.Helper()
		d, err := OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var records []Record
		for _, text := range data {
			records = append(records, Record{Data: []byte(text)})
		}
		if taken, err := d.Put(t.Context(), "changes", records); err != nil || slices.Contains(taken, false) {
			t.Error(taken, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	file := filepath.Join(dir, "changes.jsonl")
	put("1", "2")
	for _, cut := range []string{`{"awsReg`, strings.Repeat("x", 100_000)} {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(cut)
		}
		if err := cmp.Or(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		put("3")
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "1\n2\n3\n3\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("never whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	put("4")
	if got, err := os.ReadFile(file); err != nil || string(got) != "4\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// Two processes over one folder: neither overwrites or cuts off the other's lines.
func TestDir_Shared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const puts, each = 50, 3
	var wg sync.WaitGroup
	for writer := range 2 {
		d, err := OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for n := range puts {
				var records []Record
				for i := range each {
					records = append(records, Record{Data: fmt.Appendf(nil, "%d %03d %d %s", writer, n, i, strings.Repeat("x", 10*n))})
				}
				if _, err := d.Put(t.Context(), "changes", records); err != nil {
					t.Error(err)
				}
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(filepath.Join(dir, "changes.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 2*puts*each {
		t.Fatalf("%d lines", len(lines))
	}
	for i := 0; i < len(lines); i += each { // records of one Put stay together
		var writer, n, at int
		if _, err := fmt.Sscanf(lines[i], "%d %d %d", &writer, &n, &at); err != nil || at != 0 {
			t.Fatalf("line %d is %q, %v", i, lines[i], err)
		}
		for k := range each {
			if want := fmt.Sprintf("%d %03d %d %s", writer, n, k, strings.Repeat("x", 10*n)); lines[i+k] != want {
				t.Errorf("line %d is %q, want %q", i+k, lines[i+k], want)
			}
		}
	}
}

// Two processes over one folder: the file has the earliest time of all deliveries that run. It disappears with the last.
func TestDir_Note(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	other, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 11, 29, 12, 0, 0, 5, time.UTC)
	file := filepath.Join(dir, deliveredFile)
	for i, step := range []struct {
		by       *Dir
		delivery string
		after    time.Duration // -1: it ends
		want     string
	}{
		{one, "a", 0, "2026-11-29T12:00:00.000000005Z\n"},
		{other, "b", time.Hour, "2026-11-29T12:00:00.000000005Z\n"},
		{one, "a", 2 * time.Hour, "2026-11-29T13:00:00.000000005Z\n"},
		{other, "b", 3 * time.Hour, "2026-11-29T14:00:00.000000005Z\n"},
		{other, "a", -1, "2026-11-29T15:00:00.000000005Z\n"},
		{one, "longer", 26 * time.Hour, "2026-11-29T15:00:00.000000005Z\n"},
		{one, "longer", 27*time.Hour + 1, "2026-11-30T15:00:00.000000006Z\n"}, // the server of b is gone
		{one, "longer", -1, ""},
	} {
		if step.after < 0 {
			err = step.by.Forget(step.delivery)
		} else {
			err = step.by.Note(step.delivery, begin.Add(step.after))
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if string(text) != step.want || step.want == "" != errors.Is(err, os.ErrNotExist) {
			t.Errorf("step %d: %q, want %q, error %v", i, text, step.want, err)
		}
	}
	if err := errors.Join(one.Close(), other.Close()); err != nil {
		t.Error(err)
	}
}
