package kinesis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// base is the time of the first records.
var base = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// errEnd ends a run.
var errEnd = errors.New("end")

// item returns an item as JSON; "" for 0, which means that it does not exist.
func item(id string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(`{"id":{"S":%q},"n":{"N":"%d"}}`, id, n)
}

// record returns a record of an item from one number to another.
func record(at time.Time, id string, old, new int) string {
	event := "MODIFY"
	images := ""
	if old == 0 {
		event = "INSERT"
	} else {
		images += `,"OldImage":` + item(id, old)
	}
	if new == 0 {
		event = "REMOVE"
	} else {
		images += `,"NewImage":` + item(id, new)
	}
	return fmt.Sprintf(`{"awsRegion":"us-east-1","eventID":"%d","eventName":"%s","userIdentity":null,"recordFormat":"application/json","tableName":"T","dynamodb":{"ApproximateCreationDateTime":%d,"ApproximateCreationDateTimePrecision":"MICROSECOND","Keys":{"id":{"S":%q}}%s,"SizeBytes":9},"eventSource":"aws:dynamodb"}`+"\n",
		at.UnixNano(), event, at.UnixMicro(), id, images)
}

// inMilliseconds changes the records of a text to the precision of milliseconds.
func inMilliseconds(text string) string {
	var out strings.Builder
	for l := range strings.Lines(text) {
		var r map[string]any
		d := json.NewDecoder(strings.NewReader(l))
		d.UseNumber()
		if err := d.Decode(&r); err != nil {
			panic(err)
		}
		change := r["dynamodb"].(map[string]any)
		micros, err := change["ApproximateCreationDateTime"].(json.Number).Int64()
		if err != nil {
			panic(err)
		}
		change["ApproximateCreationDateTime"] = micros / 1000
		delete(change, "ApproximateCreationDateTimePrecision")
		if err := json.NewEncoder(&out).Encode(r); err != nil {
			panic(err)
		}
	}
	return out.String()
}

// model has the states of items by the rule of package apply: the change with the greatest position
// decides.
type model struct {
	states    map[string]state
	source    map[string]int // what a fetch returns; nil without a source
	fetched   int
	undecided int
}

type state struct {
	at  time.Time
	tie uint64
	n   string // "" if deleted
}

func newModel(source map[string]int) *model {
	return &model{states: map[string]state{}, source: source}
}

func (m *model) apply(_ context.Context, records []Record) error {
	for _, r := range records {
		if r.Undecided != nil {
			m.undecided++
			continue
		}
		id := r.Keys["id"].Str
		s := state{at: r.Time, tie: r.Tie}
		if r.New != nil {
			s.n = r.New["n"].Str
		}
		if was := m.states[id]; was.at.Before(s.at) || was.at.Equal(s.at) && was.tie < s.tie {
			m.states[id] = s
		}
	}
	return nil
}

// options returns options whose Sleep ends the run after some polls.
func (m *model) options(dir string, polls int) Options {
	o := Options{Dir: dir, Table: "T", Now: func() time.Time { return base.Add(time.Hour) }}
	o.Sleep = func(context.Context, time.Duration) error {
		if polls--; polls < 0 {
			return errEnd
		}
		return nil
	}
	if m.source != nil {
		o.Fetch = func(_ context.Context, k attr.Item) (attr.Item, error) {
			m.fetched++
			text := item(k["id"].Str, m.source[k["id"].Str])
			if text == "" {
				return nil, nil
			}
			return attr.UnmarshalItem([]byte(text))
		}
	}
	return o
}

// drain reads a folder until its tip.
func (m *model) drain(t *testing.T, o Options) *Folder {
	t.Helper()
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	passed, polls := f.Tip(), 0
	f.o.Sleep = func(context.Context, time.Duration) error {
		if polls++; passed() || polls > 1000 {
			return errEnd
		}
		return nil
	}
	if err := f.Run(t.Context(), m.apply); !errors.Is(err, errEnd) {
		t.Fatalf("the run ends with %v", err)
	}
	if !passed() {
		t.Error("the tip is not passed")
	}
	return f
}

// wants compares the states with those of the source.
func (m *model) wants(t *testing.T, want map[string]int) {
	t.Helper()
	for id, n := range want {
		text := ""
		if n != 0 {
			text = fmt.Sprint(n)
		}
		if got := m.states[id].n; got != text {
			t.Errorf("item %s is %q, want %q", id, got, text)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, dir, name, text string) {
	t.Helper()
	old, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	write(t, dir, name, string(old)+text)
}

// history is a random history of items, with several changes of one item at one time.
type history struct {
	lines []string
	last  map[string]int
}

func draw(r *rand.Rand, n int) history {
	h := history{last: map[string]int{}}
	at, next := base, 1
	for len(h.lines) < n {
		at = at.Add(time.Duration(r.IntN(200_000)) * time.Microsecond)
		id := fmt.Sprint("i", r.IntN(8))
		for range 1 + r.IntN(3)*r.IntN(2) {
			now := 0
			if r.IntN(5) > 0 {
				now = next // a state of its own
				if r.IntN(20) == 0 {
					now = 1 + r.IntN(3) // one that comes again
				}
				next++
			}
			if now == h.last[id] {
				continue
			}
			h.lines = append(h.lines, record(at, id, h.last[id], now))
			h.last[id] = now
		}
	}
	return h
}

// deliver repeats 5 % of the lines, and shuffles them in windows.
func deliver(r *rand.Rand, lines []string, window int) (out []string) {
	for i, l := range lines {
		if out = append(out, l); r.IntN(20) == 0 {
			out = append(out, lines[max(0, i-r.IntN(30))])
		}
	}
	for i := 0; i < len(out); i += window {
		some := out[i:min(i+window, len(out))]
		r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	}
	return out
}

// Whatever the delivery, the last state of each item is that of the source: with repeats, out of order,
// with ties in chains and without, in files that grow, and with restarts from any checkpoint.
func TestFolder_AnyDelivery(t *testing.T) {
	t.Parallel()
	runs, size := 20, 300
	if long.Enabled() {
		runs, size = 60, 1000
	}
	fetched := 0
	allowances := []time.Duration{time.Hour, 40 * time.Second} // no record comes later than that
	for run := range runs {
		r := rand.New(rand.NewPCG(7, uint64(run)))
		h := draw(r, size)
		lines := deliver(r, h.lines, 100)
		dir := t.TempDir()
		m := newModel(h.last)
		var c *Checkpoint
		name := 0
		for len(lines) > 0 {
			n := min(len(lines), 1+r.IntN(120))
			text := strings.Join(lines[:n], "")
			if run%3 == 0 {
				text = inMilliseconds(text)
			}
			cut := len(text)
			if r.IntN(3) == 0 {
				cut = r.IntN(len(text)) // a torn line
			}
			file := fmt.Sprintf("%03d.jsonl", name)
			appendTo(t, dir, file, text[:cut])
			o := m.options(dir, 1+r.IntN(2))
			o.Checkpoint, o.AcceptTies, o.Allowance = c, run%3 == 0, allowances[run%2]
			f, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Run(t.Context(), m.apply); !errors.Is(err, errEnd) {
				t.Fatalf("run %d ends with %v", run, err)
			}
			if r.IntN(4) > 0 { // otherwise the checkpoint is lost
				saved := f.Checkpoint()
				c = &saved
			}
			appendTo(t, dir, file, text[cut:])
			if lines = lines[n:]; r.IntN(3) == 0 {
				name++
			}
		}
		o := m.options(dir, 1000)
		o.Checkpoint, o.AcceptTies, o.Allowance = c, run%3 == 0, allowances[run%2]
		m.drain(t, o)
		if m.wants(t, h.last); t.Failed() {
			t.Fatalf("run %d", run)
		}
		fetched += m.fetched
	}
	if fetched == 0 {
		t.Error("no tie was fetched")
	}
}

// TestFolder_Ties: the chain of images decides which of two changes at one time is later; if it does
// not, the item is fetched, or the change is undecided.
func TestFolder_Ties(t *testing.T) {
	t.Parallel()
	r := func(old, new int) string { return record(base, "a", old, new) }
	for name, c := range map[string]struct {
		lines            []string
		last             int
		fetch, undecided int
	}{
		"in order":         {[]string{r(1, 2), r(2, 3)}, 3, 0, 0},
		"reversed":         {[]string{r(2, 3), r(1, 2)}, 3, 0, 0},
		"the middle last":  {[]string{r(3, 4), r(1, 2), r(2, 3)}, 4, 0, 0},
		"with a deletion":  {[]string{r(2, 0), r(1, 2)}, 0, 0, 0},
		"repeated":         {[]string{r(2, 3), r(1, 2), r(1, 2), r(2, 3)}, 3, 0, 0},
		"a circle":         {[]string{r(1, 2), r(2, 1)}, 1, 1, 1},
		"created, deleted": {[]string{r(0, 2), r(2, 0)}, 0, 1, 1},
		"a state again":    {[]string{r(1, 2), r(2, 3), r(3, 2)}, 3, 1, 1}, // 2 3 2 3 has the same records
		"one is missing":   {[]string{r(1, 2), r(3, 4)}, 4, 1, 1},
	} {
		for _, source := range []map[string]int{{"a": c.last}, nil} {
			dir := t.TempDir()
			write(t, dir, "f", strings.Join(c.lines, ""))
			m := newModel(source)
			o := m.options(dir, 10)
			m.drain(t, o)
			if source != nil || c.undecided == 0 {
				m.wants(t, map[string]int{"a": c.last})
			}
			if fetch, undecided := c.fetch, c.undecided; source != nil && (m.fetched != fetch || m.undecided != 0) || source == nil && m.undecided != undecided {
				t.Errorf("%s: %d fetched and %d undecided, want %d and %d", name, m.fetched, m.undecided, fetch, undecided)
			}
		}
	}
}

// A change that waits for its place is settled after the allowance: by newer records, or without any.
func TestFolder_TieWaits(t *testing.T) {
	t.Parallel()
	tie := record(base, "a", 1, 2) + record(base, "a", 2, 1)
	for name, c := range map[string]struct {
		text    string
		polls   int
		fetched int
	}{
		"waits":        {tie + record(base.Add(9*time.Second), "b", 0, 1), 1, 0},
		"newer record": {tie + record(base.Add(11*time.Second), "b", 0, 1), 1, 1},
		"nothing more": {tie, 25, 1},
		"still time":   {tie, 15, 0},
	} {
		dir := t.TempDir()
		write(t, dir, "f", c.text)
		m := newModel(map[string]int{"a": 2})
		o := m.options(dir, c.polls)
		f, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Run(t.Context(), m.apply); !errors.Is(err, errEnd) || m.fetched != c.fetched {
			t.Errorf("%s: %d fetched, want %d; error %v", name, m.fetched, c.fetched, err)
		}
		if first := f.Checkpoint().Files[0]; c.fetched == 0 && first.Offset != 0 {
			t.Errorf("%s: the next run continues at %d, after a change without a place", name, first.Offset)
		}
	}
}

// The watermark is the newest record less the allowance. A record before it is applied by its position,
// and counted once.
func TestFolder_Late(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "f", record(base, "a", 0, 1)+record(base.Add(time.Minute), "a", 2, 3))
	m := newModel(nil)
	o := m.options(dir, 10)
	f := m.drain(t, o)
	if w := f.Status().Watermark; !w.Equal(base.Add(50 * time.Second)) {
		t.Errorf("the watermark is %s", w)
	}
	appendTo(t, dir, "f", record(base.Add(30*time.Second), "a", 1, 2)+record(base.Add(30*time.Second), "b", 0, 7))
	for range 2 {
		c := f.Checkpoint()
		o.Checkpoint = &c
		f = m.drain(t, o)
	}
	m.wants(t, map[string]int{"a": 3, "b": 7})
	if s := f.Status(); s.Late != 2 || !s.Watermark.Equal(base.Add(50*time.Second)) {
		t.Errorf("the status is %+v", s)
	}
	early := o
	early.Checkpoint, early.Now = nil, func() time.Time { return base.Add(20 * time.Second) }
	if w := m.drain(t, early).Status().Watermark; !w.Equal(base.Add(10 * time.Second)) {
		t.Errorf("a record of the future moves the watermark to %s", w)
	}
}

// The watermark of a quiet table follows the time in [DeliveredFile], and the tip waits for it.
func TestFolder_Delivered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "f", record(base, "a", 0, 1))
	write(t, dir, DeliveredFile, base.Format(time.RFC3339)+"\n")
	m := newModel(nil)
	o := m.options(dir, 0)
	now := base.Add(20 * time.Second)
	o.Now = func() time.Time { return now }
	f, err := Open(o)
	must(t, err)
	passed, polls := f.Tip(), 0
	f.o.Sleep = func(context.Context, time.Duration) error {
		at, text := base.Add(time.Duration(polls)*10*time.Second), "\n"
		if polls++; polls == 2 {
			text = "" // it is being written
		}
		now = at.Add(10 * time.Second)
		if passed() {
			return errEnd
		}
		// A record that is appended before the time is applied before the watermark passes it.
		appendTo(t, dir, "f", record(at.Add(-5*time.Second), fmt.Sprint("late", polls), 0, 1))
		write(t, dir, DeliveredFile, at.Format(time.RFC3339Nano)+text)
		return nil
	}
	if err := f.Run(t.Context(), m.apply); !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	// The tip of 20 s needs the time of 30 s, which the fourth wait writes.
	if s := f.Status(); !s.Watermark.Equal(base.Add(20*time.Second)) || !s.Delivered || s.Late != 0 || polls != 5 {
		t.Errorf("after %d polls the status is %+v", polls, s)
	}
	m.wants(t, map[string]int{"a": 1, "late4": 1})
	c := f.Checkpoint()
	o.Checkpoint, o.Now = &c, func() time.Time { return base.Add(time.Hour) }
	write(t, dir, DeliveredFile, "yesterday\n")
	again, err := Open(o)
	must(t, err)
	if err := again.Run(t.Context(), m.apply); err == nil || !strings.Contains(err.Error(), "expected a time such as 2026-11-29T12:00:00Z") {
		t.Errorf("a damaged time: %v", err)
	}
}

// The time in [DeliveredFile] is read before the files: what a program appends in between, and the time that it then
// writes, count in the next pass.
func TestFolder_DeliveredBetween(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "f", record(base, "a", 0, 1))
	write(t, dir, "g", record(base, "b", 0, 1))
	m := newModel(nil)
	o := m.options(dir, 0)
	f, err := Open(o)
	must(t, err)
	f.fsys = opened{f.fsys, func() {
		appendTo(t, dir, "f", record(base.Add(time.Minute), "a", 1, 2))
		write(t, dir, DeliveredFile, base.Add(2*time.Minute).Format(time.RFC3339)+"\n")
	}}
	if err := f.Run(t.Context(), m.apply); !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	if s := f.Status(); s.Watermark.After(base) || m.states["a"].n != "1" {
		t.Errorf("the status is %+v, and item a %q", s, m.states["a"].n)
	}
}

// opened is a file system that calls once when the file g is opened.
type opened struct {
	fs.FS
	once func()
}

func (o opened) Open(name string) (fs.File, error) {
	if name == "g" {
		o.once()
	}
	return o.FS.Open(name)
}

// A line without its newline is waited for, even at the tip, unless it is complete.
func TestFolder_TornLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := record(base, "b", 0, 2)
	write(t, dir, "f", record(base, "a", 0, 1)+whole[:40])
	m := newModel(nil)
	o := m.options(dir, 3)
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	passed := f.Tip()
	if err := f.Run(t.Context(), m.apply); !errors.Is(err, errEnd) || passed() {
		t.Errorf("the tip is passed: %t, error %v", passed(), err)
	}
	m.wants(t, map[string]int{"a": 1, "b": 0})
	appendTo(t, dir, "f", strings.TrimSpace(whole[40:]))
	f = m.drain(t, o)
	m.wants(t, map[string]int{"a": 1, "b": 2})
	// The program that wrote it may have been killed, and write it again.
	write(t, dir, "f", record(base, "a", 0, 1))
	c := f.Checkpoint()
	o.Checkpoint = &c
	f = m.drain(t, o)
	if c := f.Checkpoint(); c.Files[0].Applied != int64(len(record(base, "a", 0, 1))) {
		t.Errorf("the checkpoint is %+v", c)
	}
}

// Files that were read to their ends are forgotten except for the last ones, and must stay.
func TestFolder_ManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := map[string]int{}
	for i := range 3 * maxFiles {
		id := fmt.Sprint("i", i)
		write(t, dir, fmt.Sprintf("%04d", i), record(base.Add(time.Duration(i)*time.Minute), id, 0, i+1))
		want[id] = i + 1
	}
	write(t, dir, "_SUCCESS", "")
	write(t, dir, ".0001.tmp", "{")
	m := newModel(nil)
	o := m.options(dir, 10)
	f := m.drain(t, o)
	m.wants(t, want)
	c := f.Checkpoint()
	if len(c.Files) != maxFiles || c.Folded.Files != 2*maxFiles {
		t.Errorf("%d files are listed, and %d folded", len(c.Files), c.Folded.Files)
	}
	o.Checkpoint = &c
	m.drain(t, o)
	for name, spoil := range map[string]func(){
		"is gone":           func() { must(t, os.Remove(filepath.Join(dir, fmt.Sprintf("%04d", 3*maxFiles-1)))) },
		"replaced or cut":   func() { write(t, dir, fmt.Sprintf("%04d", 3*maxFiles-2), "\n") },
		"up to 0127":        func() { write(t, dir, "0003a", record(base, "new", 0, 1)) },
		"there are 128 wit": func() { appendTo(t, dir, "0003", record(base, "new", 0, 1)) },
	} {
		restore := map[string][]byte{}
		for _, n := range []string{"0003", fmt.Sprintf("%04d", 3*maxFiles-1), fmt.Sprintf("%04d", 3*maxFiles-2)} {
			text, err := os.ReadFile(filepath.Join(dir, n))
			must(t, err)
			restore[n] = text
		}
		spoil()
		f, err := Open(o)
		must(t, err)
		if err := f.Run(t.Context(), m.apply); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
		for n, text := range restore {
			write(t, dir, n, string(text))
		}
		_ = os.Remove(filepath.Join(dir, "0003a"))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Progress is read while the folder is, and never goes back.
func TestFolder_Watched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 3 * maxLines {
		text.WriteString(record(base.Add(time.Duration(i)*time.Second), fmt.Sprint("i", i%9), i/9, i/9+1))
	}
	write(t, dir, "f", text.String())
	m := newModel(nil)
	f, err := Open(m.options(dir, 3))
	must(t, err)
	done := make(chan error)
	go func() { done <- f.Run(t.Context(), m.apply) }()
	passed, last := f.Tip(), Checkpoint{}
	for ended := false; !ended; {
		select {
		case err := <-done:
			ended = true
			if !errors.Is(err, errEnd) || !passed() {
				t.Errorf("the tip is passed: %t, error %v", passed(), err)
			}
		default:
		}
		c := f.Checkpoint()
		if len(last.Files) > 0 && (c.Watermark.Before(last.Watermark) || c.Files[0].Offset < last.Files[0].Offset) || f.Status().Late > 0 {
			t.Fatalf("after the checkpoint %+v comes %+v", last, c)
		}
		last = c
	}
}

// TestFolder_Refused: records that cannot be ordered or read are refused with file, line and remedy.
func TestFolder_Refused(t *testing.T) {
	t.Parallel()
	good := record(base, "a", 0, 1)
	for text, want := range map[string]string{
		good + "{\"eventID\":\n":                                          "f:2: ",
		good + inMilliseconds(good):                                       "f:2: the time of the record has whole milliseconds, so that the order of changes in one millisecond may be unknown: set the precision",
		strings.Replace(good, `"INSERT"`, `"MODIFY"`, 1):                  "f:1: the OldImage of the change record contradicts its event MODIFY",
		strings.Replace(good, `"SizeBytes":9`, `"SequenceNumber":"1"`, 1): "f:1: the record has a SequenceNumber, so it comes from DynamoDB Streams",
		strings.Replace(good, `"tableName":"T",`, "", 1):                  "f:1: the change record does not name its table",
		strings.Replace(good, `"tableName":"T"`, `"tableName":"U"`, 1):    "the folder has no record of table T",
		record(base.Add(time.Hour), "a", 0, 1):                            "f:1: the oldest record of table T is of 2026-11-28T13:00:00Z, after 2026-11-28T12:30:00Z, up to which changes are applied",
		strings.Repeat(" ", maxLineBytes+1):                               "f:1: the line has more than",
	} {
		dir := t.TempDir()
		write(t, dir, "f", text)
		m := newModel(nil)
		o := m.options(dir, 3)
		o.Since = base.Add(30 * time.Minute)
		f, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		f.Tip()
		err = f.Run(t.Context(), m.apply)
		if err == nil || !strings.Contains(err.Error(), want) || source.DamageOf(err) == "" {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := Open(Options{Dir: filepath.Join(t.TempDir(), "absent")}); err == nil || !strings.Contains(err.Error(), "expected a folder") {
		t.Errorf("the error is %v", err)
	}
}

// FuzzRecord: no line ends the process, and what is parsed has the images that its event needs.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{record(base, "a", 0, 1), record(base, "a", 1, 2), record(base, "a", 2, 0), inMilliseconds(record(base, "a", 1, 2))} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := source.ParseKinesisRecord(bytes.TrimSpace(text), source.Position{File: "f", Line: 1})
		if err != nil {
			if source.DamageOf(err) == "" || !strings.HasPrefix(err.Error(), "f:1") {
				t.Errorf("the error %v has no position", err)
			}
			return
		}
		if len(r.Keys) == 0 || r.New == nil && r.Old == nil || r.Table == "" || r.Time.IsZero() {
			t.Errorf("%q is parsed as %+v", text, r)
		}
		if l := linkOf(&r); l.old == l.new && !attr.EqualItems(r.Old, r.New) {
			t.Errorf("different images of %q have one hash", text)
		}
	})
}
