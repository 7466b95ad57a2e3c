package facade

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/datadriven"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

func TestMain(m *testing.M) {
	memory.CollectSeldom()
	goleak.VerifyTestMain(m)
}

// testTime is the start time of every test.
var testTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newTestServer returns a facade with a Bigtable of its own, from peer.Bigtable. Its clock does
// not move, and its random numbers are the same in each run. change may change the options.
func newTestServer(tb testing.TB, change ...func(*Options)) *Server {
	tb.Helper()
	now := clock.NewFrozen(testTime)
	opts := Options{
		Conn: peer.Bigtable(tb, now), Now: now.Now, Rand: rand.NewChaCha8([32]byte{1}), NoAuth: true,
		Logger: slog.New(slog.NewTextHandler(tb.Output(), nil)),
		wall:   clock.NewFrozen(testTime),
	}
	for _, c := range change {
		c(&opts)
	}
	s, err := New(tb.Context(), opts)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("closing the facade: %v", err)
		}
	})
	return s
}

// post sends one operation through ServeHTTP.
func post(s *Server, operation, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, posted(operation, body, change))
	return w
}

// posted returns the request of an operation.
func posted(operation, body string, change []func(*http.Request)) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", wire.ContentTypeJSON)
	r.Header.Set("X-Amz-Target", targetDynamoDB+operation)
	for _, c := range change {
		c(r)
	}
	return r
}

// must calls an operation that must succeed.
func must(tb testing.TB, s *Server, operation, body string) string {
	tb.Helper()
	answer, err := s.Call(tb.Context(), operation, []byte(body))
	if err != nil {
		tb.Fatalf("%s %.2000s: %v", operation, body, err)
	}
	return string(answer)
}

// TestOperations runs testdata/operations/<operation>/*: each directive is the name of an
// operation, its input the request, its output the answer. Arguments:
//
//	row=N     the row of testdata/messages.tsv whose text the case shows
//	profile=NAME
//	          the wording of a region, or the older one: classic
//	profile=both
//	          the default and the older wording: one answer where they are the same
//	unconfirmed
//	          the text has a single source, which is not AWS
//	repeat=N  in the input, «pad» stands for N letters a
//	quiet     print "ok" instead of an answer without error
//	keep=NAME the members of this name are printed as «NAME», which stands for the last
//	          of them in later inputs
//	meanwhile the input is a TransactWriteItems, a line "meanwhile", and a
//	          request that runs before the transaction is committed
//
// Each file has its own server. Other directives:
//
//	options   at the beginning of a file: durations of Options.StatusDelays,
//	          such as create=10s, and index-lag=10s; throttle=tables or partitions
//	advance   moves the clock by the durations in the input
//	filled    waits until indexes are filled, and backups and restores are done
//	object    writes the input to key=BUCKET/NAME; nothing creates the bucket
//	jobs      waits until exports and imports are done
func TestOperations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "operations", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases under testdata/operations: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			var f operationFile
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				return f.run(t, d)
			})
		})
	}
}

// operationFile is the state of one file of TestOperations.
type operationFile struct {
	now     *clock.Clock
	conn    *intercept.Conn
	server  *Server
	classic *Server // over the same store
	kept    map[string]string
	buckets *os.Root
}

// openBuckets opens a folder of buckets.
func openBuckets(tb testing.TB, dir string) *os.Root {
	tb.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = root.Close() })
	return root
}

// writeObject writes an object into a bucket, which it creates.
func writeObject(tb testing.TB, buckets *os.Root, key, text string) {
	tb.Helper()
	if err := buckets.MkdirAll(path.Dir(key), 0o777); err != nil {
		tb.Fatal(err)
	}
	if err := buckets.WriteFile(key, []byte(text), 0o666); err != nil {
		tb.Fatal(err)
	}
}

// waitForJobs waits until a server has finished its exports and imports.
func waitForJobs(tb testing.TB, s *Server) {
	tb.Helper()
	b, _ := s.opts.bucketJobs(s.store)
	if err := b.Wait(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// meanwhile calls hook once, before the next transaction is committed.
func meanwhile(conn *intercept.Conn, hook func()) {
	var met atomic.Bool
	conn.Before(func(_ context.Context, req any) error {
		r, ok := req.(*btpb.CheckAndMutateRowRequest)
		if ok && strings.HasPrefix(string(r.GetRowKey()), "x/") && len(r.GetTrueMutations()) > 0 && !met.Swap(true) { // a decision
			hook()
		}
		return nil
	})
}

func (f *operationFile) open(t *testing.T, change func(*Options)) {
	t.Helper()
	f.now = clock.NewFrozen(testTime)
	f.server = newTestServer(t, change, func(o *Options) {
		f.conn = &intercept.Conn{ClientConnInterface: o.Conn}
		f.buckets = openBuckets(t, t.TempDir())
		o.Buckets = f.buckets
		o.Conn, o.Now = f.conn, f.now.Now
	})
	f.classic = inRegion(t, f.server, MessagesClassic)
}

// inRegion returns a server with the store of s and the wording of a region.
func inRegion(tb testing.TB, s *Server, region MessageProfile) *Server {
	tb.Helper()
	other := &Server{opts: s.opts, store: s.store, pages: s.pages, throttle: s.throttle}
	var err error
	if other.opts.layers, err = request.LayersOf(string(region)); err != nil {
		tb.Fatal(err)
	}
	return other
}

// run runs one directive.
func (f *operationFile) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "options" {
		f.open(t, func(o *Options) {
			delays := map[string]*time.Duration{
				"create": &o.StatusDelays.Create, "update": &o.StatusDelays.Update, "delete": &o.StatusDelays.Delete,
				"index-create": &o.StatusDelays.IndexCreate, "index-fill": &o.StatusDelays.IndexFill, "index-delete": &o.StatusDelays.IndexDelete,
				"time-to-live": &o.StatusDelays.TimeToLive, "backup": &o.StatusDelays.Backup, "index-lag": &o.IndexLag,
			}
			for _, arg := range d.CmdArgs {
				if arg.Key == "throttle" {
					o.Throttle = map[string]Throttle{"tables": ThrottleTables, "partitions": ThrottlePartitions}[arg.Vals[0]]
					continue
				}
				*delays[arg.Key] = parseDuration(t, d, arg.Vals[0])
			}
		})
		return ""
	}
	if f.server == nil {
		f.open(t, func(*Options) {})
	}
	switch d.Cmd {
	case "advance":
		f.now.Advance(parseDuration(t, d, d.Input))
		return ""
	case "filled":
		f.server.store.Wait()
		awaitJobs(t, f.server)
		return ""
	case "jobs":
		waitForJobs(t, f.server)
		return ""
	case "object":
		var key string
		d.ScanArgs(t, "key", &key)
		if d.Input == "" {
			key += "/.empty"
		}
		writeObject(t, f.buckets, key, d.Input)
		return ""
	}
	target := f.server
	input := d.Input
	for name, value := range f.kept {
		input = strings.ReplaceAll(input, "«"+name+"»", value)
	}
	var keep []string
	quiet, both, during := false, false, false
	for _, arg := range d.CmdArgs {
		switch {
		case arg.Key == "row" && len(arg.Vals) > 0:
		case arg.Key == "profile" && arg.Vals[0] == "both":
			both = true
		case arg.Key == "profile":
			target = inRegion(t, f.server, MessageProfile(arg.Vals[0]))
		case arg.Key == "unconfirmed":
		case arg.Key == "repeat":
			n, err := strconv.Atoi(arg.Vals[0])
			if err != nil {
				d.Fatalf(t, "repeat: %v", err)
			}
			input = strings.ReplaceAll(input, "«pad»", strings.Repeat("a", n))
		case arg.Key == "quiet":
			quiet = true
		case arg.Key == "keep":
			keep = append(keep, arg.Vals...)
		case arg.Key == "meanwhile":
			during = true
		default:
			d.Fatalf(t, "unknown argument %s", arg.Key)
		}
	}
	var shown string
	show := func() {
		answer, err := target.Call(t.Context(), d.Cmd, []byte(input))
		for _, name := range keep {
			answer = f.keep(name, answer)
		}
		if shown = showAnswer(answer, err); quiet && err == nil {
			shown = "ok\n"
		}
		if !both {
			return
		}
		if older := showAnswer(f.classic.Call(t.Context(), d.Cmd, []byte(input))); older != shown {
			shown = "current: " + shown + "classic: " + older
		}
	}
	if !during {
		show()
		return shown
	}
	transaction, req, _ := strings.Cut(input, "\nmeanwhile\n")
	input = req
	meanwhile(f.conn, show)
	must(t, f.server, "TransactWriteItems", transaction)
	return shown
}

// keep stores the last string of the members called name in an answer, and returns the answer
// with «name» instead of each of these strings.
func (f *operationFile) keep(name string, answer []byte) []byte {
	member := regexp.MustCompile(`("` + name + `":)"((?:[^"\\]|\\.)*)"`)
	for _, found := range member.FindAllSubmatch(answer, -1) {
		if f.kept == nil {
			f.kept = map[string]string{}
		}
		f.kept[name] = string(found[2])
	}
	return member.ReplaceAll(answer, []byte(`$1"«`+name+`»"`))
}

func parseDuration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	t.Helper()
	duration, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return duration
}

// showAnswer formats the result of Call.
func showAnswer(answer []byte, err error) string {
	e, ok := awserr.As(err)
	switch {
	case ok:
		text := strconv.Itoa(e.HTTPStatus) + " " + e.Error() + "\n"
		if e.Item != nil || e.Reasons != nil {
			text += prettyJSON(wire.EncodeError(e), "") + "\n"
		}
		return text
	case err != nil:
		return "unexpected: " + err.Error() + "\n"
	case len(answer) == 0:
		return "no body\n"
	default:
		return prettyJSON(answer, "") + "\n"
	}
}

// prettyJSON formats JSON, with each value on one line if it fits.
func prettyJSON(v jsontext.Value, indent string) string {
	const lineChars = 110
	if len(indent)+len(v) <= lineChars || v.Kind() != '{' && v.Kind() != '[' {
		return string(v)
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	open, err := d.ReadToken()
	if err != nil {
		return err.Error()
	}
	object := open.Kind() == '{'
	text, separator := string(v[:1]), ""
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		text += separator + "\n" + indent + " "
		separator = ","
		for _, suffix := range []string{": ", ""} {
			if suffix != "" && !object {
				continue
			}
			member, err := d.ReadValue()
			if err != nil {
				return err.Error()
			}
			text += prettyJSON(member.Clone(), indent+" ") + suffix
		}
	}
	return text + "\n" + indent + string(v[len(v)-1:])
}
