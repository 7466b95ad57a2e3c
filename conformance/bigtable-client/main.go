// Command bigtable-client runs the integration tests of the official Go client, unchanged,
// against a tabletop binary, and compares each outcome with the one declared in declared.txt.
// It fails if an outcome differs in either direction, or if the client has an undeclared test.
//
//	go run -C conformance ./bigtable-client ../bin/tabletop [TEST...]
//
// The tests come from the client module named in go.mod. Each runs in a process of its own, as
// it would against the service (-it.use-prod); only BIGTABLE_EMULATOR_HOST names the server.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

// The settings of the tests for their server.
const (
	project  = "p"
	instance = "i"
	cluster  = "c"
)

//go:embed declared.txt
var declared string

// outcome is the declared end of a test.
type outcome string

const (
	passes outcome = "pass"
	skips  outcome = "skip" // by its own decision
	later  outcome = "later"
	// noServer is a test that no server can pass on this machine.
	noServer outcome = "no-server"
	// limited is a test that fails because a client with BIGTABLE_EMULATOR_HOST receives at
	// most 4 MiB. It passes with the usual 256 MiB.
	limited outcome = "limited"
	// elsewhere is a test that is not run, because it has a server of its own.
	elsewhere outcome = "elsewhere"
)

// declaration is a line of declared.txt.
type declaration struct {
	test    string
	outcome outcome
	says    string // required text in the output of a test that does not pass
	why     string
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bigtable-client: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: bigtable-client BINARY [TEST...]")
	}
	binary, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	declarations, err := parse(declared)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bigtable-client")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tests, err := build(ctx, dir)
	if err != nil {
		return err
	}
	if err := complete(ctx, tests.published, declarations); err != nil {
		return err
	}
	if len(args) > 1 {
		declarations = slices.DeleteFunc(declarations, func(d declaration) bool { return !slices.Contains(args[1:], d.test) })
	}
	addr, stop, err := serve(ctx, binary)
	if err != nil {
		return err
	}
	defer stop()
	if err := createInstance(ctx, addr); err != nil {
		return err
	}

	report := log.New(os.Stdout, "", 0)
	counts := map[outcome]int{}
	differ := 0
	for _, d := range declarations {
		counts[d.outcome]++
		complaint := tests.check(ctx, addr, d)
		verdict := "as declared"
		if complaint != "" {
			differ++
			verdict = "DIFFERS"
		}
		report.Printf("%-56s %-10s %s", d.test, d.outcome, verdict)
		if complaint != "" {
			report.Printf("    declared: %s %s\n    %s", d.says, d.why, strings.ReplaceAll(complaint, "\n", "\n    "))
		}
	}
	report.Printf("%d pass, %d pass but for the client's limit, %d wait for later features, %d no server can pass, %d skip, %d have their own server",
		counts[passes], counts[limited], counts[later], counts[noServer], counts[skips], counts[elsewhere])
	if differ > 0 {
		return fmt.Errorf("%d tests did not end as declared in declared.txt", differ)
	}
	return nil
}

// parse reads lines of the form TEST | OUTCOME | SAYS | WHY.
func parse(text string) ([]declaration, error) {
	var out []declaration
	for n, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if len(fields) != 4 {
			return nil, fmt.Errorf("declared.txt:%d: %d fields; expected TEST | OUTCOME | SAYS | WHY", n+1, len(fields))
		}
		d := declaration{fields[0], outcome(fields[1]), fields[2], fields[3]}
		silent := d.outcome == passes || d.outcome == elsewhere
		switch {
		case !slices.Contains([]outcome{passes, skips, later, noServer, limited, elsewhere}, d.outcome):
			return nil, fmt.Errorf("declared.txt:%d: %q is not an outcome", n+1, d.outcome)
		case silent != (d.says == ""), (d.outcome == passes) != (d.why == ""):
			return nil, fmt.Errorf("declared.txt:%d: a test that does not pass needs a reason, and if it is run, an output; other tests must have neither", n+1)
		}
		out = append(out, d)
	}
	return out, nil
}

// binaries are the client's tests: as published, and with the receive limit for the service
// applied to an emulator too.
type binaries struct {
	dir               string // of the client's module, with their test data
	published, raised string
}

// In internal/option/option.go, the client dials an emulator with only these options.
const (
	dialsWith = "grpc.WithTransportCredentials(insecure.NewCredentials())"
	raised    = dialsWith + ", grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<28))"
)

// build compiles the client's tests twice: in their module, which provides all dependencies, and in a
// copy of it with the raised limit.
func build(ctx context.Context, dir string) (*binaries, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "cloud.google.com/go/bigtable").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the client's module: %w", err)
	}
	b := &binaries{dir: strings.TrimSpace(string(out)), published: filepath.Join(dir, "published.test"), raised: filepath.Join(dir, "raised.test")}
	copied := filepath.Join(dir, "module")
	if err := os.CopyFS(copied, os.DirFS(b.dir)); err != nil {
		return nil, err
	}
	file := filepath.Join(copied, "internal", "option", "option.go")
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(src, []byte(dialsWith)); n != 1 {
		return nil, fmt.Errorf("the client no longer dials emulators as expected: option.go has %s %d times", dialsWith, n)
	}
	if err := os.WriteFile(file, bytes.Replace(src, []byte(dialsWith), []byte(raised), 1), 0o600); err != nil {
		return nil, err
	}
	for from, to := range map[string]string{b.dir: b.published, copied: b.raised} {
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-o", to, ".")
		cmd.Dir, cmd.Stderr = from, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("compiling the client's tests: %w", err)
		}
	}
	return b, nil
}

// complete rejects a list that does not name exactly the existing tests.
func complete(ctx context.Context, binary string, declarations []declaration) error {
	out, err := exec.CommandContext(ctx, binary, "-test.list", "^TestIntegration_").Output()
	if err != nil {
		return fmt.Errorf("listing the client's tests: %w", err)
	}
	there := strings.Fields(string(out))
	named := make([]string, len(declarations))
	for i, d := range declarations {
		named[i] = "TestIntegration_" + d.test
	}
	slices.Sort(there)
	slices.Sort(named)
	if !slices.Equal(there, named) {
		return fmt.Errorf("the client has the tests\n%s\nbut declared.txt names\n%s", strings.Join(there, " "), strings.Join(named, " "))
	}
	return nil
}

// serve starts the server and returns its address.
func serve(ctx context.Context, binary string) (addr string, stop func(), err error) {
	server := exec.CommandContext(ctx, binary, "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}
	ready, err := serveout.Read(out)
	if err != nil {
		stop()
		return "", nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return ready.Exports["BIGTABLE_EMULATOR_HOST"], stop, nil
}

// createInstance creates the instance that the tests require.
func createInstance(ctx context.Context, addr string) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = btapb.NewBigtableInstanceAdminClient(conn).CreateInstance(ctx, &btapb.CreateInstanceRequest{
		Parent: "projects/" + project, InstanceId: instance, Instance: &btapb.Instance{DisplayName: instance},
		Clusters: map[string]*btapb.Cluster{cluster: {Location: "projects/" + project + "/locations/us-central1-b", ServeNodes: 1}},
	})
	return err
}

// check runs a test. It returns the end and the output of the test if they differ from the declared
// ones, or "".
func (b *binaries) check(ctx context.Context, addr string, d declaration) string {
	if d.outcome == elsewhere {
		return ""
	}
	end, output := b.test(ctx, b.published, addr, d.test)
	want := "FAIL"
	switch d.outcome {
	case passes:
		want = "PASS"
	case skips:
		want = "SKIP"
	case later, noServer, limited, elsewhere:
	}
	if end != want || !strings.Contains(output, d.says) {
		return fmt.Sprintf("%s:\n%s", end, output)
	}
	if d.outcome == limited {
		if end, output := b.test(ctx, b.raised, addr, d.test); end != "PASS" {
			return fmt.Sprintf("%s with the raised limit:\n%s", end, output)
		}
	}
	return ""
}

// test runs one test in a process and returns its end, PASS, FAIL or SKIP, and
// the end of its output.
func (b *binaries) test(ctx context.Context, binary, addr, name string) (end, output string) {
	// One subtest at a time: those of CreateAppProfile make their ids in a shared buffer, and
	// two concurrent ones can use the same id.
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^TestIntegration_"+name+"$", "-test.v", "-test.timeout=2m", "-test.parallel=1",
		"-it.use-prod", "-it.project="+project, "-it.instance="+instance, "-it.cluster="+cluster, "-it.table=t")
	cmd.Dir = b.dir
	// The keys name the region in which the client's tests create instances; they are not
	// verified.
	cmd.Env = append(os.Environ(), "BIGTABLE_EMULATOR_HOST="+addr,
		"GCLOUD_TESTS_BIGTABLE_KEYRING=projects/"+project+"/locations/us-central1/keyRings/tests")
	out, err := cmd.CombinedOutput()
	output = string(out)
	switch {
	case err != nil:
		end = "FAIL"
	case strings.Contains(output, "--- SKIP: TestIntegration_"+name+" "):
		end = "SKIP"
	case strings.Contains(output, "--- PASS: TestIntegration_"+name+" "):
		end = "PASS"
	default:
		end = "no test"
	}
	const most = 2000
	if len(output) > most && end == "PASS" {
		output = "…" + output[len(output)-most:]
	}
	return end, output
}
