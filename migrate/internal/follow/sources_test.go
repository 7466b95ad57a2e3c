package follow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/stream"
	"github.com/tabletop-emu/tabletop/testkit"
)

// mortal is a connection of a process that is killed: after some calls, none succeeds.
type mortal struct {
	grpc.ClientConnInterface
	left atomic.Int64
}

var errCut = status.Error(codes.PermissionDenied, "killed")

func (m *mortal) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if m.left.Add(-1) < 0 {
		return errCut
	}
	return m.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func (m *mortal) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if m.left.Add(-1) < 0 {
		return nil, errCut
	}
	return m.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}

// leaseEnds is longer than a lease.
const leaseEnds = 20 * time.Second

// killed follows until the tip, and is killed after ever more calls until it gets there.
func (l *live) killed(t *testing.T, o migrate.FollowOptions, step int64) {
	t.Helper()
	o.UntilTip = true
	o.Warn = func(string) { l.env.Advance(leaseEnds) } // it waits for the lease of the killed one
	const first = 20
	for calls := int64(first); ; calls += step {
		conn := &mortal{ClientConnInterface: l.target}
		conn.left.Store(calls)
		o.Owner = fmt.Sprint("killed after ", calls)
		err := migrate.Follow(t.Context(), conn, o)
		if err == nil {
			if calls == first {
				t.Error("the follower was never killed")
			}
			return
		}
		if status.Code(err) != codes.PermissionDenied {
			t.Fatalf("the run ends with %v", err)
		}
	}
}

// bucket is the folder of exports.
func (l *live) bucket(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o750); err != nil {
		t.Fatal(err)
	}
	return path
}

// increment exports the changes of a window, and returns when the export is complete.
func (l *live) increment(t *testing.T, bucket string, from, to time.Time, view types.ExportViewType) {
	t.Helper()
	out, err := l.ddb.ExportTableToPointInTime(t.Context(), &dynamodb.ExportTableToPointInTimeInput{
		TableArn: aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/Things"), S3Bucket: aws.String(bucket), ExportType: types.ExportTypeIncrementalExport,
		IncrementalExportSpecification: &types.IncrementalExportSpecification{ExportFromTime: &from, ExportToTime: &to, ExportViewType: view},
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		d, err := l.ddb.DescribeExport(t.Context(), &dynamodb.DescribeExportInput{ExportArn: out.ExportDescription.ExportArn})
		if err != nil {
			t.Fatal(err)
		}
		switch d.ExportDescription.ExportStatus { //nolint:exhaustive // else it is in progress
		case types.ExportStatusCompleted:
			return
		case types.ExportStatusFailed:
			t.Fatalf("the export failed: %s", aws.ToString(d.ExportDescription.FailureMessage))
		}
		if err := pause(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// exported is a live table with exports.
func exported(t *testing.T, more ...testkit.Option) (l *live, dir string) {
	t.Helper()
	dir = t.TempDir()
	l = create(t, followedTable, append(more, testkit.WithBuckets(dir))...)
	_, err := l.ddb.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{
		TableName: aws.String("Things"), PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

// TestFollow_Chain is plan C: a load that took longer than the stream retains records, three increments
// that overlap, and then the stream. Each follower is killed at several places.
func TestFollow_Chain(t *testing.T) {
	t.Parallel()
	writes, step := 30, int64(60)
	if long.Enabled() {
		writes, step = 200, 31
	}
	for view, mode := range map[types.ExportViewType]string{types.ExportViewTypeNewAndOldImages: "guarded", types.ExportViewTypeNewImage: "ordered"} {
		t.Run(string(view), func(t *testing.T) {
			t.Parallel()
			l, dir := exported(t)
			options := func(owner string) migrate.FollowOptions {
				o := l.options(owner)
				o.Mode = mode
				return o
			}
			r := rand.New(rand.NewPCG(9, uint64(len(view))))
			write := func(n int) {
				for range n {
					l.write(t, r)
				}
			}
			write(writes)
			l.env.Advance(time.Hour)
			l.load(t)
			loaded := l.now()
			l.env.Advance(23*time.Hour + 30*time.Minute)
			write(writes)
			o := options("stream")
			o.UntilTip = true
			err := migrate.Follow(t.Context(), l.target, o)
			if of, ok := errors.AsType[*stream.Error](err); !ok || of.Kind != stream.Gap || !strings.Contains(err.Error(), "tabletop migrate follow Things --increments DIR") {
				t.Fatalf("the error is %v", err)
			}
			o = options("increments")
			o.Source = stream.Clients{} // AWS is not called
			o.Increments = l.bucket(t, dir, "increments")
			from := loaded
			for i := range 3 {
				l.env.Advance(20 * time.Minute)
				to := l.now().Truncate(time.Second)
				l.env.Advance(2 * time.Second)
				l.increment(t, "increments", from.Add(-time.Minute).Truncate(time.Second), to, view)
				from = to
				write(writes)
				if i != 1 { // twice two windows at once
					l.killed(t, o, step)
				}
			}
			all, err := migrate.Status(t.Context(), l.target, l.common())
			if err != nil || len(all) != 1 || all[0].Source != "increments" || !all[0].Watermark.Equal(from) || all[0].Phase != "DRAINED" {
				t.Errorf("the status is %+v, error %v", all, err)
			}
			l.killed(t, options("stream"), step)
			l.verify(t)
			if all, err = migrate.Status(t.Context(), l.target, l.common()); err != nil || all[0].Source != "" || all[0].Phase != "DRAINED" {
				t.Errorf("the status is %+v, error %v", all, err)
			}
			// A folder without records fails, and changes nothing: the stream continues at the watermark, now
			// that it no longer has the records since the load.
			o = l.options("empty")
			o.Source, o.KinesisDir, o.UntilTip = stream.Clients{}, t.TempDir(), true
			if err := migrate.Follow(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "the folder has no record of table Things") {
				t.Errorf("the error is %v", err)
			}
			write(writes)
			l.killed(t, options("stream"), step)
			l.verify(t)
			// A hole in the followed stream: an increment over it, and the stream again.
			from = l.now()
			write(writes)
			l.env.Advance(30 * time.Hour)
			write(writes)
			to := l.now().Add(time.Second).Truncate(time.Second)
			l.env.Advance(2 * time.Second)
			l.increment(t, "increments", from.Add(-time.Hour).Truncate(time.Second), from.Add(22*time.Hour).Truncate(time.Second), view)
			l.increment(t, "increments", from.Add(21*time.Hour).Truncate(time.Second), to, view)
			o = options("hole")
			o.UntilTip = true
			if err := migrate.Follow(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "--increments DIR") {
				t.Fatalf("the error is %v", err)
			}
			o.Increments = filepath.Join(dir, "increments")
			o.Report = func(s migrate.FollowStatus) {
				if s.Watermark.IsZero() {
					t.Error("no watermark")
				}
			}
			l.killed(t, o, step)
			again := func(e migrate.PhaseEvent) bool { return e.From == "DRAINED" && e.To == "CATCHING_UP" }
			if all, err = migrate.Status(t.Context(), l.target, l.common()); err != nil || all[0].Phase != "DRAINED" || !slices.ContainsFunc(all[0].History, again) {
				t.Errorf("the status is %+v, error %v", all, err)
			}
			l.verify(t)
			write(writes)
			l.killed(t, options("stream"), step)
			l.verify(t)
		})
	}
}

// TestFollow_KilledEarly: a follower that is killed before its first checkpoint has noted its source, so
// that the changes of another source are later ones.
func TestFollow_KilledEarly(t *testing.T) {
	t.Parallel()
	l, dir := exported(t)
	r := rand.New(rand.NewPCG(17, 1))
	l.env.Advance(time.Hour)
	l.load(t)
	from := l.now().Add(-time.Second).Truncate(time.Second)
	for range 60 {
		l.write(t, r)
	}
	l.env.Advance(20 * time.Minute)
	l.bucket(t, dir, "increments")
	l.increment(t, "increments", from, l.now().Truncate(time.Second), types.ExportViewTypeNewImage)
	for range 60 {
		l.write(t, r)
	}
	o := l.options("increments")
	o.Increments, o.Mode = filepath.Join(dir, "increments"), "guarded"
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		switch d { //nolint:exhaustive // the others are pauses
		case 250 * time.Millisecond: // before a checkpoint
			<-ctx.Done()
		case 5 * time.Second: // all is applied
			return errCut
		}
		return pause(ctx, d)
	}
	conn := &mortal{ClientConnInterface: l.target}
	conn.left.Store(40)
	if err := migrate.Follow(t.Context(), conn, o); status.Code(err) != codes.PermissionDenied {
		t.Fatalf("the run ends with %v", err)
	}
	o = l.options("stream")
	o.Mode, o.UntilTip = "guarded", true
	o.Warn = func(string) { l.env.Advance(leaseEnds) } // it waits for the lease of the killed one
	if err := migrate.Follow(t.Context(), l.target, o); err != nil {
		t.Fatal(err)
	}
	l.verify(t)
}

// TestFollow_Kinesis: records that are repeated, shuffled and tied leave the target equal to the source,
// with kills at several places.
func TestFollow_Kinesis(t *testing.T) {
	t.Parallel()
	writes, step := 150, int64(150)
	if long.Enabled() {
		writes, step = 2000, 500
	}
	for _, precision := range []types.ApproximateCreationDateTimePrecision{types.ApproximateCreationDateTimePrecisionMicrosecond, types.ApproximateCreationDateTimePrecisionMillisecond} {
		t.Run(string(precision), func(t *testing.T) {
			t.Parallel()
			sent, given := t.TempDir(), t.TempDir()
			l := create(t, followedTable, testkit.WithDynamoDBOptions(facade.Options{KinesisDir: sent}))
			l.enableKinesis(t, precision)
			r := rand.New(rand.NewPCG(11, uint64(len(precision))))
			for range 50 {
				l.write(t, r)
			}
			l.env.Advance(time.Minute)
			l.load(t)
			for range writes {
				l.write(t, r)
				if r.IntN(10) == 0 {
					l.env.Advance(time.Duration(r.IntN(100)) * time.Millisecond)
				}
			}
			lines := l.delivered(t, filepath.Join(sent, "changes.jsonl"))
			for i := range lines { // 5 % come again, and windows of 100 are shuffled
				if r.IntN(20) == 0 {
					lines = append(lines, lines[i])
				}
			}
			n := len(lines)
			for i := 0; i < n; i += 100 {
				some := lines[i:min(i+100, n)]
				r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			}
			o := l.options("kinesis")
			o.KinesisDir, o.Source = given, stream.Clients{}
			if precision == types.ApproximateCreationDateTimePrecisionMillisecond {
				put(t, given, "a.jsonl", lines[:1])
				o.UntilTip = true
				if err := migrate.Follow(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "--accept-ties") {
					t.Errorf("the error is %v", err)
				}
				o.AcceptTies = true
			}
			o.Items = l.ddb
			for i, name := range []string{"a.jsonl", "b.jsonl"} {
				put(t, given, name, lines[i*n/2:(i+1)*n/2])
				l.killed(t, o, step)
			}
			l.verify(t)
			all, err := migrate.Status(t.Context(), l.target, l.common())
			// Whether a record is late depends on the draw; TestFolder_Late counts them.
			if err != nil || len(all) != 1 || all[0].Source != "kinesis" || all[0].Late == 0 && !long.Enabled() {
				t.Errorf("the status is %+v, error %v", all, err)
			}
			o.Mode = "ordered"
			if err := migrate.Follow(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "not delivered in order") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestFollow_KinesisQuiet: a server states how far the records in its folder are complete, so the watermark of a
// table moves that nobody writes.
func TestFollow_KinesisQuiet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := create(t, followedTable, testkit.WithDynamoDBOptions(facade.Options{KinesisDir: dir}))
	l.enableKinesis(t, types.ApproximateCreationDateTimePrecisionMicrosecond)
	r := rand.New(rand.NewPCG(11, 1))
	for range 20 {
		l.write(t, r)
	}
	l.env.Advance(time.Minute)
	l.load(t)
	l.write(t, r)
	written := l.now()
	l.env.Advance(time.Hour)
	o := l.options("quiet")
	o.KinesisDir, o.Source, o.Until = dir, stream.Clients{}, written.Add(30*time.Minute)
	if err := migrate.Follow(t.Context(), l.target, o); err != nil {
		t.Fatal(err)
	}
	all, err := migrate.Status(t.Context(), l.target, l.common())
	if err != nil || len(all) != 1 || all[0].Rule != "delivered" {
		t.Errorf("the status is %+v, error %v", all, err)
	}
	l.verify(t)
}

func put(t *testing.T, dir, name string, lines [][]byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// enableKinesis enables a destination of the table, and waits until it is active.
func (l *live) enableKinesis(t *testing.T, precision types.ApproximateCreationDateTimePrecision) {
	t.Helper()
	_, err := l.ddb.EnableKinesisStreamingDestination(t.Context(), &dynamodb.EnableKinesisStreamingDestinationInput{
		TableName: aws.String("Things"), StreamArn: aws.String("arn:aws:kinesis:us-east-1:000000000000:stream/changes"),
		EnableKinesisStreamingConfiguration: &types.EnableKinesisStreamingConfiguration{ApproximateCreationDateTimePrecision: precision},
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		d, err := l.ddb.DescribeKinesisStreamingDestination(t.Context(), &dynamodb.DescribeKinesisStreamingDestinationInput{TableName: aws.String("Things")})
		if err != nil {
			t.Fatal(err)
		}
		if d.KinesisDataStreamDestinations[0].DestinationStatus == types.DestinationStatusActive {
			return
		}
		l.env.Advance(time.Second)
		_ = pause(t.Context(), time.Second)
	}
}

// delivered returns the records that the server has delivered, once none is missing: the table's stream
// has as many.
func (l *live) delivered(t *testing.T, file string) [][]byte {
	t.Helper()
	want := len(l.env.StreamRecords(t, "Things"))
	for {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if lines := bytes.SplitAfter(text, []byte("\n")); len(lines) > want && len(lines[len(lines)-1]) == 0 {
			return lines[:len(lines)-1]
		}
		if err := pause(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFollow_Increments: an export is applied once it is complete, in the order of the windows. A gap, an
// export of another table and an empty folder are refused.
func TestFollow_Increments(t *testing.T) {
	t.Parallel()
	l, dir := exported(t)
	r := rand.New(rand.NewPCG(13, 1))
	for range 30 {
		l.write(t, r)
	}
	l.env.Advance(time.Hour)
	ends := []time.Time{l.now().Truncate(time.Second)} // before the load, which may be in a later second
	l.load(t)
	l.bucket(t, dir, "all")
	for range 3 {
		for range 30 {
			l.write(t, r)
		}
		l.env.Advance(20 * time.Minute)
		ends = append(ends, l.now().Truncate(time.Second))
		l.env.Advance(2 * time.Second)
	}
	for i, to := range ends[1:] {
		l.bucket(t, dir, fmt.Sprint("window", i))
		l.increment(t, fmt.Sprint("window", i), ends[i], to, types.ExportViewTypeNewAndOldImages)
	}
	arriving := l.bucket(t, t.TempDir(), "arriving")
	o := l.options("increments")
	o.Source, o.Increments = stream.Clients{}, arriving
	refused := func(want string) {
		t.Helper()
		tip := o
		tip.UntilTip = true
		if err := migrate.Follow(t.Context(), l.target, tip); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	refused("the folder has no incremental export of table Things")
	copied := func(i int, more ...string) {
		t.Helper()
		from := filepath.Join(dir, fmt.Sprint("window", i))
		err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			for _, out := range more {
				if strings.Contains(path, out) {
					return nil
				}
			}
			rel, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			to := filepath.Join(arriving, rel)
			return errors.Join(os.MkdirAll(filepath.Dir(to), 0o750), os.WriteFile(to, text, 0o600))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	copied(2)
	refused(fmt.Sprintf("but changes are applied up to %s", loadedAt(t, l)))
	refused("export that time too (aws dynamodb export-table-to-point-in-time --export-type INCREMENTAL_EXPORT, from ")
	// The export that fills the gap is on its way: first without its data, then without its summary.
	copied(1)
	copied(0, "data/")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	polls, at := 0, make(chan time.Time, 1000)
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		if d == 5*time.Second { // a look into the folder
			switch polls++; polls {
			case 2:
				must(t, os.RemoveAll(arriving))
				copied(1)
				copied(2)
				copied(0, "manifest-summary")
			case 4:
				copied(0)
			}
		}
		return pause(ctx, d)
	}
	o.Report = func(s migrate.FollowStatus) {
		if polls < 4 && s.Changes > 0 {
			t.Error("changes were applied before the export was complete")
		}
		if at <- s.Watermark; s.Watermark.Equal(ends[3]) {
			stop()
		}
	}
	if err := migrate.Follow(ctx, l.target, o); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ends with %v", err)
	}
	close(at)
	last := time.Time{}
	for w := range at {
		if w.Before(last) {
			t.Errorf("the watermark goes back from %s to %s", last, w)
		}
		last = w
	}
	l.verify(t)
	o.Sleep, o.Report = pause, nil
	tip := o
	tip.UntilTip = true
	if err := migrate.Follow(t.Context(), l.target, tip); err != nil { // all are applied
		t.Error(err)
	}
	// Another table has the name now.
	_, err := l.ddb.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("Things")})
	must(t, err)
	again, dir2 := exported(t)
	again.env.Advance(3 * time.Hour)
	again.bucket(t, dir2, "again")
	again.increment(t, "again", ends[3].Add(-30*time.Minute), ends[3].Add(30*time.Minute), types.ExportViewTypeNewImage)
	o.Increments = filepath.Join(dir2, "again")
	refused("the table was created again or restored; export it again")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loadedAt is the time of the loaded items, as messages print it.
func loadedAt(t *testing.T, l *live) string {
	t.Helper()
	all, err := migrate.Status(t.Context(), l.target, l.common())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0].Watermark.Format(time.RFC3339Nano)
}

// kinesisLine is a record of an item with one attribute more; "" leaves out an image.
func kinesisLine(at time.Time, old, new string) []byte {
	image := func(name, more string) string {
		if more == "" {
			return ""
		}
		return fmt.Sprintf(`,%q:{"PK":{"S":"bad"},"SK":{"S":"s"},%s}`, name, more)
	}
	event := map[bool]string{true: "INSERT", false: "MODIFY"}[old == ""]
	return fmt.Appendf(nil, `{"eventID":"e","eventName":%q,"tableName":"Things","dynamodb":{"ApproximateCreationDateTime":%d,"ApproximateCreationDateTimePrecision":"MICROSECOND","Keys":{"PK":{"S":"bad"},"SK":{"S":"s"}}%s%s}}`+"\n",
		event, at.UnixMicro(), image("OldImage", old), image("NewImage", new))
}

// TestFollow_KinesisDeadLetter: a change that cannot be applied stays a dead letter until a later one is
// applied. An earlier one does not remove it, and a repeated one does not bring it back. A change whose
// order is unknown is a dead letter without a source.
func TestFollow_KinesisDeadLetter(t *testing.T) {
	t.Parallel()
	l := start(t, strings.Replace(followedTable, "sidecar", "error", 1), 20)
	at := l.now().Add(time.Hour)
	r := func(second int, old, new string) []byte {
		return kinesisLine(at.Add(time.Duration(second)*time.Second), old, new)
	}
	const one, two, bad, four = `"G":{"S":"g1"}`, `"G":{"S":"g2"}`, `"unknown":{"S":"x"}`, `"G":{"S":"g4"}`
	dir := t.TempDir()
	var lines [][]byte
	for i, c := range []struct {
		text    []byte
		letters int
		code    string
	}{
		{r(-7200, "", one), 0, ""},
		{r(3, two, bad), 1, "E-UNKNOWN-ATTRIBUTE"},
		{r(2, one, two), 1, "E-UNKNOWN-ATTRIBUTE"}, // it is earlier
		{r(3, two, bad), 1, "E-UNKNOWN-ATTRIBUTE"},
		{r(4, bad, four), 0, ""},
		{r(3, two, bad), 0, ""}, // a later one was applied
		{append(r(5, four, one), r(5, one, four)...), 1, ""},
		{r(6, one, two), 0, ""},
	} {
		lines = append(lines, c.text)
		put(t, dir, "f", lines)
		o := l.options(fmt.Sprint("run ", i))
		o.KinesisDir, o.DeadLetter, o.UntilTip = dir, io.Discard, true
		if err := migrate.Follow(t.Context(), l.target, o); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		all, err := migrate.Status(t.Context(), l.target, l.common())
		must(t, err)
		if len(all[0].Letters) != c.letters || c.letters > 0 && (all[0].Letters[0].Code != c.code || c.code == "" && !strings.Contains(all[0].Letters[0].Reason, "their images do not show their order")) {
			t.Errorf("step %d: the letters are %+v", i, all[0].Letters)
		}
	}
	_, err := l.ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Things"), Item: map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "bad"}, "SK": &types.AttributeValueMemberS{Value: "s"}, "G": &types.AttributeValueMemberS{Value: "g2"},
	}})
	must(t, err)
	l.verify(t)
	put(t, dir, "g", [][]byte{bytes.ReplaceAll(r(7, two, one), []byte(`"SK"`), []byte(`"sort"`))})
	o := l.options("key")
	o.KinesisDir, o.UntilTip = dir, true
	if err := migrate.Follow(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "/g:1: the Keys of the change are not the key of table Things in the mapping") {
		t.Errorf("the error is %v", err)
	}
}
