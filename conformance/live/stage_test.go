package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/conformance/internal/program"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

var (
	runFor   = flag.Duration("live.for", 0, "how long each test writes, at the rate of -live.rate; 0: a few hundred writes, without a rate")
	rate     = flag.Int("live.rate", 1000, "written items a second, with -live.for")
	loaded   = flag.Int("live.items", 100_000, "loaded items, with -live.for")
	seed     = flag.Uint64("live.seed", 1, "begins the random sequences of the generator")
	profiles = flag.String("live.profiles", "", "a folder for CPU profiles of the servers")
	built    = flag.String("live.program", "", "the path of the tested tabletop; empty: it is built, without optimization by a profile")
)

// full reports whether the full size runs.
func full() bool { return *runFor > 0 }

// binary is the path of the tested tabletop.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of the time the tests wait, for the end of a lease or for the watermark.
	err := flag.Set("test.parallel", "8")
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/live:", err)
		os.Exit(1)
	}
	if binary = *built; binary == "" {
		binary, err = program.Path(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/live: the binary:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const (
	tableName  = "Live"
	targetName = "live"
	indexName  = "byG"
	// lead is the distance of the clock of the source from that of this machine: the stream has to
	// be a minute older than the export.
	lead = 2 * time.Minute
)

// mappingFile lays out single items, and items that share rows.
const mappingFile = `apiVersion: migration/v1
source:
  table: Live
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {rev: N, data: S, n: N, big: N, list: L, set: SS, g: S, gs: S}
  gsis: [{name: byG, hash: g, range: gs, projection: ALL, as: table}]
target:
  table: live
  families: {a: {gc: {versions: 1}}, list: {gc: {versions: 100}}, set: {gc: {versions: 1}}, p: {gc: {versions: 100}}, _t: {gc: {versions: 1}}}
rules:
- name: single
  when: {SK: item}
  row: ["i", "{PK:s}"]
  put: [{attr: set, cell: "set:{member}"}, {attr: list, cell: "list:all"}, {attr: "*", cell: "a:{attr}"}]
- name: part
  when: {SK: "part{p:pad(1)}"}
  row: ["g", "{PK:s}"]
  put: [{attr: "*", cell: "p:{p}.{attr}"}]
`

// stage is a source and a target with a loaded table, and the clients that use them.
type stage struct {
	t      *testing.T
	dir    string
	source *server // of DynamoDB
	target *server // of Bigtable
	reader *server // a DynamoDB endpoint over the target
	api    *dynamodb.Client
	items  *dynamodb.Client // of reader
	rows   *bigtable.Client

	mapping string                          // file
	spent   time.Duration                   // CPU of all commands so far
	via     struct{ source, target string } // the addresses for the follower

	g *generator
	j *judge
}

// setStage starts the servers and loads an export, while the generator writes. The source also has
// the given flags.
func setStage(t *testing.T, sourceFlags ...string) *stage {
	t.Helper()
	if !full() {
		t.Parallel()
	}
	s := &stage{t: t, dir: t.TempDir()}
	buckets := filepath.Join(s.dir, "buckets")
	if err := os.MkdirAll(filepath.Join(buckets, "exports"), 0o777); err != nil {
		t.Fatal(err)
	}
	s.source = s.serve("source", append([]string{
		"--bigtable", "off", "--dynamodb", ownAddress(), "--console", ownAddress(), "--data", filepath.Join(s.dir, "source"), "--buckets", buckets,
	}, sourceFlags...)...)
	s.target = s.serve("target", "--bigtable", ownAddress(), "--dynamodb", "off", "--data", filepath.Join(s.dir, "target"))
	s.api, s.rows = dynamoDB(t, s.source, 1), bigtableOf(t, s.target)
	s.create()
	s.g = newGenerator(t, s.api)
	s.g.load()
	s.ctl("advance", lead.String())
	s.export()
	s.g.give(50) // changes of the stream that the load lacks
	mapping := filepath.Join(s.dir, "mapping.yaml")
	if err := os.WriteFile(mapping, []byte(mappingFile), 0o666); err != nil {
		t.Fatal(err)
	}
	s.must("migrate", "load", filepath.Join(buckets, "exports"), "--mapping", mapping, "--target", s.target.address)
	s.via.source, s.via.target, s.mapping, s.j = s.source.address, s.target.address, mapping, newJudge(s)
	return s
}

// create creates the table.
func (s *stage) create() {
	s.t.Helper()
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	}
	key := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange}}
	}
	_, err := s.api.CreateTable(s.t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(tableName), BillingMode: types.BillingModePayPerRequest, KeySchema: key("PK", "SK"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("PK"), attribute("SK"), attribute("g"), attribute("gs")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(indexName), KeySchema: key("g", "gs"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err == nil {
		_, err = s.api.UpdateContinuousBackups(s.t.Context(), &dynamodb.UpdateContinuousBackupsInput{
			TableName: aws.String(tableName), PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// export exports the table into a bucket.
func (s *stage) export() {
	s.t.Helper()
	table, err := s.api.DescribeTable(s.t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(tableName)})
	if err != nil {
		s.t.Fatal(err)
	}
	begun, err := s.api.ExportTableToPointInTime(s.t.Context(), &dynamodb.ExportTableToPointInTimeInput{TableArn: table.Table.TableArn, S3Bucket: aws.String("exports")})
	if err != nil {
		s.t.Fatal(err)
	}
	for {
		now, err := s.api.DescribeExport(s.t.Context(), &dynamodb.DescribeExportInput{ExportArn: begun.ExportDescription.ExportArn})
		if err != nil {
			s.t.Fatal(err)
		}
		switch now.ExportDescription.ExportStatus {
		case types.ExportStatusCompleted:
			return
		case types.ExportStatusFailed:
			s.t.Fatal(aws.ToString(now.ExportDescription.FailureMessage))
		case types.ExportStatusInProgress:
			pause(s.t.Context())
		}
	}
}

// followArgs are the arguments of a follower of the table.
func (s *stage) followArgs(more ...string) []string {
	return append([]string{"migrate", "follow", tableName, "--dynamodb-endpoint", "http://" + s.via.source, "--target", s.via.target}, more...)
}

// verifyArgs are the arguments of a live verification.
func (s *stage) verifyArgs(more ...string) []string {
	return append([]string{"migrate", "verify", "--live", "--table", tableName, "--dynamodb-endpoint", s.source.url(), "--against", s.target.address}, more...)
}

// caughtUp waits until the follower has applied nearly all.
func (s *stage) caughtUp() {
	s.t.Helper()
	s.must("migrate", "status", tableName, "--wait", "phase=FOLLOWING,lag=2s,letters=0", "--timeout", "1h", "--target", s.target.address)
}

// run runs a command to its end, and returns its output and exit code.
func (s *stage) run(args ...string) (string, int) {
	s.t.Helper()
	cmd := command(s.t.Context(), args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	s.spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return out.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that has to succeed.
func (s *stage) must(args ...string) string {
	s.t.Helper()
	out, code := s.run(args...)
	if code != 0 {
		s.t.Fatalf("%s: exit code %d: %s", strings.Join(args, " "), code, out)
	}
	return out
}

// ctl runs a verb on the source.
func (s *stage) ctl(args ...string) {
	s.t.Helper()
	cmd := command(s.t.Context(), append([]string{"ctl"}, args...)...)
	for _, name := range []string{"TABLETOP_CONSOLE_URL", "TABLETOP_CONSOLE_TOKEN"} {
		cmd.Env = append(cmd.Env, name+"="+s.source.exports[name])
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// state and checkpoint read what the follower records; the zero values if the target is unavailable.
func (s *stage) state(ctx context.Context) ms.State {
	return stored[ms.State](ctx, s, ms.StateRow(targetName))
}

func (s *stage) checkpoint(ctx context.Context) ms.Checkpoint {
	return stored[ms.Checkpoint](ctx, s, ms.CheckpointRow(targetName, "stream"))
}

func stored[V ms.Value](ctx context.Context, s *stage, key []byte) (v V) {
	s.t.Helper()
	ctx, cancel := limited(ctx)
	defer cancel()
	row, err := s.rows.Open(ms.Table).ReadRow(ctx, string(key))
	if err != nil {
		return v
	}
	for _, family := range row {
		if v, err = ms.Decode[V](key, family[0].Value); err != nil {
			s.t.Error(err)
		}
	}
	return v
}

// pause waits a moment before the next look.
func pause(ctx context.Context) {
	timer := time.NewTimer(200 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// limited bounds a call whose server may be away.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 15*time.Second)
}

// command returns a command without the variables of this process.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TABLETOP_") || strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "BIGTABLE_")
	})
	return cmd
}

// server is a `tabletop serve` that keeps its addresses over restarts.
type server struct {
	t       *testing.T
	name    string
	args    []string
	address string // of its endpoint

	mu      sync.Mutex
	cmd     *exec.Cmd
	exports map[string]string
	stderr  strings.Builder
}

// serve starts a server.
func (s *stage) serve(name string, args ...string) *server {
	s.t.Helper()
	v := &server{t: s.t, name: name, args: args}
	v.start()
	s.t.Cleanup(func() {
		if v.kill(); s.t.Failed() {
			s.t.Logf("the %s wrote: %s", name, &v.stderr)
		}
	})
	for i, arg := range args {
		address := map[string]string{"--bigtable": "BIGTABLE_EMULATOR_HOST", "--dynamodb": "AWS_ENDPOINT_URL_DYNAMODB"}[arg]
		if address = strings.TrimPrefix(v.exports[address], "http://"); address != "" && args[i+1] != "off" {
			v.args[i+1], v.address = address, address
		}
	}
	return v
}

func (v *server) url() string { return "http://" + v.address }

// start starts the server and waits until it is ready.
func (v *server) start() {
	v.t.Helper()
	args := append([]string{"serve", "--until-stdin-closes"}, v.args...)
	if *profiles != "" {
		args = append(args, "--cpu-profile", filepath.Join(*profiles, strings.ReplaceAll(v.t.Name(), "/", "-")+"-"+v.name+".pprof"))
	}
	cmd := command(context.WithoutCancel(v.t.Context()), args...)
	cmd.Stderr = &v.stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe() // closes with this process
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		v.t.Fatal(err)
	}
	ready, err := serveout.Read(out)
	if err != nil {
		v.t.Fatal(errors.Join(err, cmd.Process.Kill(), cmd.Wait()))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cmd, v.exports = cmd, ready.Exports
}

// kill kills the server; with profiles it interrupts it, so that they are written.
func (v *server) kill() {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	signal := os.Kill
	if *profiles != "" {
		signal = os.Interrupt
	}
	if err := v.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		v.t.Error(err)
	}
	_ = v.cmd.Wait()
}

func (v *server) pid() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cmd.Process.Pid
}

// ownAddress returns a loopback address, with port 0, that no other program uses: a restarted
// server finds its port free.
func ownAddress() string {
	own := fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), rand.N(256), 1+rand.N(254))
	lis, err := net.Listen("tcp", own)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = lis.Close()
	return own
}

// dynamoDB returns a client. That of a writer makes no second attempt, so that the outcome of a call is
// known or unknown.
func dynamoDB(t *testing.T, v *server, attempts int) *dynamodb.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 2 * writers
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		RetryMaxAttempts: attempts,
		Region:           "us-east-1", BaseEndpoint: aws.String(v.url()), Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient: &http.Client{Transport: transport},
	})
}

func bigtableOf(t *testing.T, v *server) *bigtable.Client {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+v.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client, err := bigtable.NewClientWithConfig(t.Context(), "tabletop", "tabletop",
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// readReport reads the report of a verification.
func readReport[R any](t *testing.T, file string) (r R) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
