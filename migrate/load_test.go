package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// manyItems is a source of n items of one key attribute, in order.
func manyItems(t *testing.T, n int) *source.Source {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"Item":{"id":{"S":"%05d"},"n":{"N":"%d"},"tags":{"SS":["x","y%d"]}}}`+"\n", i, i, i%7)
	}
	return open(t, b.String())
}

func open(t *testing.T, lines string) *source.Source {
	t.Helper()
	src, err := source.OpenFS(fstest.MapFS{"items.jsonl": {Data: []byte(lines)}}, "items.jsonl", source.Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// tableText returns the text of all rows of a table.
func tableText(t *testing.T, conn grpc.ClientConnInterface, id string) string {
	t.Helper()
	var out []byte
	for row, err := range table.NewBigtable(conn, table.Options{}).TableRows(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		out = golden.AppendRow(out, row)
	}
	return string(out)
}

// failing is a connection whose MutateRows calls a test intercepts: it returns an error, or nil
// to forward them.
type failing struct {
	grpc.ClientConnInterface
	calls int
	fail  func(call int, req *btpb.MutateRowsRequest) error
	entry func(e *btpb.MutateRowsRequest_Entry) codes.Code
}

func (f *failing) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := f.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || !strings.HasSuffix(method, "/MutateRows") {
		return s, err
	}
	return &failingStream{ClientStream: s, f: f}, nil
}

// Invoke also counts the conditional writes, for which fail gets no request.
func (f *failing) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if _, ok := req.(*btpb.CheckAndMutateRowRequest); ok {
		f.calls++
		if f.fail != nil {
			if err := f.fail(f.calls, nil); err != nil {
				return err
			}
		}
	}
	return f.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

type failingStream struct {
	grpc.ClientStream
	f   *failing
	req *btpb.MutateRowsRequest
}

func (s *failingStream) SendMsg(m any) error {
	s.req = m.(*btpb.MutateRowsRequest)
	s.f.calls++
	if s.f.fail != nil {
		if err := s.f.fail(s.f.calls, s.req); err != nil {
			return err
		}
	}
	return s.ClientStream.SendMsg(m)
}

func (s *failingStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil || s.f.entry == nil {
		return err
	}
	for _, e := range m.(*btpb.MutateRowsResponse).GetEntries() {
		if c := s.f.entry(s.req.GetEntries()[e.GetIndex()]); c != codes.OK {
			e.Status = status.New(c, "refused by the test").Proto()
		}
	}
	return nil
}

// A load killed in the middle continues from its checkpoint, with the same rows as an
// uninterrupted one.
func TestLoad_Resumes(t *testing.T) {
	t.Parallel()
	const n = 500
	whole := newBigtableServer(t)
	if _, err := Load(t.Context(), whole, manyItems(t, n), LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	want := tableText(t, whole, "items")

	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	o := LoadOptions{Common: Common{knobs: table.Knobs{Batch: 4 << 10, CheckpointBytes: 1}}, Checkpoint: filepath.Join(t.TempDir(), "checkpoint")}
	killed := errors.New("killed")
	conn.fail = func(call int, _ *btpb.MutateRowsRequest) error {
		if call == 10 {
			return killed
		}
		return nil
	}
	if _, err := Load(t.Context(), conn, manyItems(t, n), o); !errors.Is(err, killed) {
		t.Fatalf("error %v, want the load to be killed", err)
	}
	_, err := Load(t.Context(), conn, manyItems(t, n+1), o)
	WantDamage(t, err, source.CheckpointInvalid, "the checkpoint belongs to another load")

	calls := conn.calls
	r, err := Load(t.Context(), conn, manyItems(t, n), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := tableText(t, conn, "items"); got != want {
		t.Error("the rows of a resumed load differ from those of one that was not interrupted")
	}
	resumed := r.Tables[0].ItemsResumed
	if resumed == 0 || resumed >= n {
		t.Errorf("%d items were passed over, want some of %d", resumed, n)
	}
	if sent := r.Tables[0].CellsWritten + r.Tables[0].CellsUnchanged; sent != (n-resumed)*3 {
		t.Errorf("%d cells were dealt with, want 3 of each of the %d items that were left", sent, n-resumed)
	}
	if conn.calls-calls >= calls+20 {
		t.Errorf("%d batches after %d: it started over", conn.calls-calls, calls)
	}
	if _, err := os.Stat(o.Checkpoint); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the checkpoint of a complete load is still there: %v", err)
	}

	if err := os.WriteFile(o.Checkpoint, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Load(t.Context(), conn, manyItems(t, n), o)
	WantDamage(t, err, source.CheckpointInvalid, "the file is not the checkpoint of a load")
}

// Items that Bigtable refused are retried by each resumed load, even after one that was killed
// after retrying them.
func TestLoad_ResumesRefused(t *testing.T) {
	t.Parallel()
	const n, refused = 400, 150
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	o := LoadOptions{Common: Common{knobs: table.Knobs{Batch: 2 << 10, CheckpointBytes: 1}}, Checkpoint: filepath.Join(t.TempDir(), "checkpoint"), DeadLetter: io.Discard}
	for _, dies := range []string{"00200", "00300"} {
		conn.fail = func(_ int, req *btpb.MutateRowsRequest) error {
			for _, e := range req.GetEntries() {
				if string(e.GetRowKey()) < fmt.Sprintf("%05d", refused) {
					e.GetMutations()[0].GetSetCell().FamilyName = "none"
				}
			}
			if slices.ContainsFunc(req.GetEntries(), func(e *btpb.MutateRowsRequest_Entry) bool { return string(e.GetRowKey()) == dies }) {
				return errors.New("killed")
			}
			return nil
		}
		if _, err := Load(t.Context(), conn, manyItems(t, n), o); err == nil {
			t.Fatal("the load was not killed")
		}
		text, err := os.ReadFile(o.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		var c load.CheckpointState
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		if got := c.Tables[0]; len(got.Retry) != refused || got.Items < refused || !slices.IsSorted(got.Retry) {
			t.Errorf("killed at %s: %d items are to be tried again after %d, want %d", dies, len(got.Retry), got.Items, refused)
		}
	}
}

// A checkpoint belongs to its target: another target, or one that lost its rows, does not have
// them.
func TestLoad_ResumesNowhereElse(t *testing.T) {
	t.Parallel()
	const n = 100
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	conn.fail = func(call int, _ *btpb.MutateRowsRequest) error {
		if call == 5 {
			return errors.New("killed")
		}
		return nil
	}
	file := filepath.Join(t.TempDir(), "checkpoint")
	o := LoadOptions{Common: Common{knobs: table.Knobs{Batch: 1 << 10, CheckpointBytes: 1}}, Target: "here:1", Checkpoint: file}
	if _, err := Load(t.Context(), conn, manyItems(t, n), o); err == nil {
		t.Fatal("the load was not killed")
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := o
	elsewhere.Target = "there:1"
	_, err = Prepare(t.Context(), manyItems(t, n), elsewhere)
	WantDamage(t, err, source.CheckpointInvalid, "the checkpoint belongs to another load")

	want := ""
	for _, empty := range []string{"no table", "a table without rows"} {
		fresh := &failing{ClientConnInterface: newBigtableServer(t)}
		if empty != "no table" {
			fresh.fail = func(int, *btpb.MutateRowsRequest) error { return errors.New("killed") }
			if _, err := Load(t.Context(), fresh, manyItems(t, n), LoadOptions{}); err == nil {
				t.Fatal("the load was not killed")
			}
			fresh.fail = nil
		}
		if err := os.WriteFile(file, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Load(t.Context(), fresh, manyItems(t, n), o)
		if err != nil {
			t.Fatalf("%s: %v", empty, err)
		}
		if r.Tables[0].ItemsResumed != 0 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "table items lacks rows that checkpoint") {
			t.Errorf("%s: %d items passed over, warnings %q; want none, and one that says why", empty, r.Tables[0].ItemsResumed, r.Warnings)
		}
		rows := tableText(t, fresh, "items")
		if want == "" {
			want = rows
		}
		if rows != want || r.Tables[0].CellsWritten != 3*n {
			t.Errorf("%s: %d cells written, want %d, in the rows of a whole load", empty, r.Tables[0].CellsWritten, 3*n)
		}
	}
}

func TestLoad_Again(t *testing.T) {
	t.Parallel()
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	for i, want := range [][2]int64{{300, 0}, {0, 300}} {
		r, err := Load(t.Context(), conn, manyItems(t, 100), LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int64{r.Tables[0].CellsWritten, r.Tables[0].CellsUnchanged}; got != want {
			t.Errorf("load %d: %d cells written, %d unchanged; want %v", i+1, got[0], got[1], want)
		}
	}
	if conn.calls != 5 {
		t.Errorf("%d requests wrote, want 5: the items, their record in mapping.SchemaTable, and writing and deleting the load's id", conn.calls)
	}
}

// Transient errors are retried after a wait; permanent ones are reported.
func TestLoad_Retries(t *testing.T) {
	t.Parallel()
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	down, busy := 2, 1
	conn.fail = func(_ int, req *btpb.MutateRowsRequest) error {
		if strings.HasSuffix(req.GetTableName(), "/items") && down > 0 {
			down--
			return status.Error(codes.Unavailable, "later")
		}
		return nil
	}
	conn.entry = func(e *btpb.MutateRowsRequest_Entry) codes.Code {
		if string(e.GetRowKey()) == "00007" && busy > 0 {
			busy--
			return codes.Aborted
		}
		return codes.OK
	}
	var waits []time.Duration
	var reported []Wait
	o := Common{Sleep: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}, Waiting: func(w Wait) { reported = append(reported, w) }}
	r, err := Load(t.Context(), conn, manyItems(t, 10), LoadOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if r.Tables[0].CellsWritten != 30 {
		t.Errorf("%d cells written, want 30", r.Tables[0].CellsWritten)
	}
	if n := len(reported); n != 3 || status.Code(reported[0].Err) != codes.Unavailable || status.Code(reported[2].Err) != codes.Aborted {
		t.Errorf("the reported waits are %+v", reported)
	}

	waits, reported = nil, nil
	conn.fail = func(_ int, req *btpb.MutateRowsRequest) error {
		if req == nil { // of the load's id
			return nil
		}
		return status.Error(codes.Unavailable, "never")
	}
	if _, err := Load(t.Context(), conn, manyItems(t, 20), LoadOptions{Common: o, Mix: true}); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v, want that of the server", err)
	}
	left := 25500 * time.Millisecond
	for i, w := range reported {
		if w.Table != "items" || w.Next != waits[i] || w.Left != left || w.Spent != 25500*time.Millisecond-left {
			t.Errorf("wait %d is reported as %+v, with %v left", i, w, left)
		}
		left -= w.Next
	}
	if left != 0 {
		t.Errorf("%v are reported without a wait", left)
	}
	conn.fail = nil
	conn.entry = func(*btpb.MutateRowsRequest_Entry) codes.Code { return codes.InvalidArgument }
	_, err = Load(t.Context(), conn, manyItems(t, 21), LoadOptions{Common: o, Mix: true})
	WantDamage(t, err, source.WriteRefused, `items.jsonl:11: Bigtable refused row "00010" of table items`)
}

func TestLoad_DeadLetters(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"id":{"S":"a"},"n":{"N":"1"}}`,
		`{"id":{"S":"b"},"n":{"N":"one"}}`,
		`{"id":{"S":"c"`,
		`{"no":{"S":"d"}}`,
		`{"id":{"S":"a"},"n":{"N":"2"}}`,
		`{"id":{"S":"e"},"n":{"N":"3"}}`,
		`{"id":{"S":"f"},"n":{"N":"4"}}`,
	}
	text := strings.Join(lines, "\n") + "\n"
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	if _, err := Load(t.Context(), conn, open(t, text), LoadOptions{}); source.DamageOf(err) != source.NumberInvalid {
		t.Errorf("error %v without dead letters, want %s", err, source.NumberInvalid)
	}
	conn.entry = func(e *btpb.MutateRowsRequest_Entry) codes.Code {
		if string(e.GetRowKey()) == "e" {
			return codes.InvalidArgument
		}
		return codes.OK
	}
	var dead strings.Builder
	r, err := Load(t.Context(), conn, open(t, text), LoadOptions{DeadLetter: &dead})
	if err != nil {
		t.Fatal(err)
	}
	want := []table.DeadLetter{
		{File: "items.jsonl", Line: 2, Damage: source.NumberInvalid, Text: lines[1]},
		{File: "items.jsonl", Line: 3, Damage: source.NotJSON, Text: lines[2]},
		{File: "items.jsonl", Line: 4, Damage: source.KeyMissing, Item: []byte(lines[3])},
		{File: "items.jsonl", Line: 5, Damage: source.KeyDuplicate, Item: []byte(lines[4])},
		{File: "items.jsonl", Line: 6, Damage: source.WriteRefused, Item: []byte(lines[5])},
	}
	got := strings.Split(strings.TrimSpace(dead.String()), "\n")
	if len(got) != len(want) {
		t.Fatalf("dead letters:\n%s\nwant %d", dead.String(), len(want))
	}
	for i, text := range got {
		var letter struct {
			File, Table, Damage, Error, Text string
			Line                             int
			Item                             json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &letter); err != nil {
			t.Fatal(err)
		}
		w := want[i]
		if letter.File != w.File || letter.Line != w.Line || letter.Table != "items" || letter.Damage != string(w.Damage) ||
			letter.Text != w.Text || string(letter.Item) != string(w.Item) || !strings.Contains(letter.Error, fmt.Sprintf("items.jsonl:%d: ", w.Line)) {
			t.Errorf("dead letter %d: %s\nwant %+v", i+1, text, w)
		}
	}
	if r.Items != 3 || r.Tables[0].DeadLetters != 5 || r.Differences != 5 || r.Equal() {
		t.Errorf("%d items, %d dead letters, %d differences; want 3, 5, 5", r.Items, r.Tables[0].DeadLetters, r.Differences)
	}
	for i, f := range r.Failures {
		if f.Kind != report.NotLoaded || f.Damage != want[i].Damage {
			t.Errorf("failure %s, want %s by %s", f, report.NotLoaded, want[i].Damage)
		}
	}
	// Each is reported by the check that met it, and to CI systems.
	checks := []report.Check{
		{Name: "input", State: report.CheckFailed, Differences: 4, Detail: "json-lines, 4 items not loaded: see the dead letters"},
		{Name: "load", Table: "items", State: report.CheckFailed, Differences: 1, Detail: "3 items"},
	}
	if !slices.Equal(r.Checks, checks) {
		t.Errorf("checks %+v, want %+v", r.Checks, checks)
	}
	var junit strings.Builder
	if err := report.WriteJUnit(&junit, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(junit.String(), `failures="2"`) || !strings.Contains(junit.String(), "NotLoaded table items damage number-invalid") {
		t.Errorf("JUnit report without the dead letters:\n%s", junit.String())
	}
	const rows = "a [61]\n  a:n @1262304000000000 = \"1\"\ne [65]\n  a:n @1262304000000000 = \"3\"\nf [66]\n  a:n @1262304000000000 = \"4\"\n"
	if got := tableText(t, conn, "items"); got != rows { // only the test refused e
		t.Errorf("rows:\n%s\nwant:\n%s", got, rows)
	}
}

// Items without a place in the mapping are left out.
func TestLoad_DeadLettersOfMapping(t *testing.T) {
	t.Parallel()
	_, o := subject(t, "s2-video")
	var lines []string
	for _, sk := range []string{"Video", "VideoComment#8305627524999", "Unknown", "VideoComment#no"} {
		lines = append(lines, fmt.Sprintf(`{"PK":{"S":"0123"},"SK":{"S":%q},"Content":{"S":"x"}}`, sk))
	}
	lines[0] = `{"PK":{"S":"0123"},"SK":{"S":"Video"},"Formats":{"M":{"480":{"S":"u"}}},"UploadDate":{"S":"2023-09-10T15:21:48"}}`
	in, err := source.OpenFS(fstest.MapFS{"in": {Data: []byte(strings.Join(lines, "\n"))}}, "in", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var dead strings.Builder
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(in), VerifyOptions{Common: Common{Mappings: o.Mappings}, DeadLetter: &dead})
	if err != nil {
		t.Fatal(err)
	}
	unmatched := slices.DeleteFunc(slices.Clone(r.Failures), func(f report.Failure) bool { return f.Kind != report.NotLoaded || f.Damage != source.ItemUnmatched })
	if r.Items != 2 || r.Differences != 2 || len(unmatched) != 2 || strings.Count(dead.String(), `"damage":"unmatched"`) != 2 {
		t.Errorf("%d items, %d differences; want 2, 2\n%s\n%s", r.Items, r.Differences, r.Text(), dead.String())
	}
}
