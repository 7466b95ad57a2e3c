package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/tabletop-emu/tabletop/conformance/internal/program"
	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

// binary is the path of the tested tabletop.
var binary string

// TestMain builds the binary, starts it, and sets its exported variables in this process'
// environment, where the clients find them.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tabletop-conformance")
	if err != nil {
		return failed("temporary folder", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary, err = program.Path(context.Background()); err != nil {
		return failed("the binary", err)
	}
	buckets := filepath.Join(dir, "buckets")
	if err := writeBucket(buckets); err != nil {
		return failed("bucket", err)
	}
	servers.start = func() (*process, error) {
		return serve("--bigtable", "127.0.0.1:0", "--bigtable-rest", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--buckets", buckets)
	}
	first, err := servers.of(0)
	if err != nil {
		return failed("serve", err)
	}
	for name, value := range first.exports {
		if err := os.Setenv(name, value); err != nil {
			return failed("environment", err)
		}
	}
	code := m.Run()
	for _, server := range servers.running {
		if err := server.stop(); err != nil {
			return failed("stopping a server", err)
		}
	}
	return code
}

// servers are the shared servers. A test that runs again in this process, as with -count and
// -cpu, gets another one, without its tables.
var servers shared

type shared struct {
	start func() (*process, error)

	mu      sync.Mutex
	running []*process
	runs    map[string]int     // of each test
	run     map[*testing.T]int // of the tests that run now
}

// runOf returns the number of earlier runs of a test.
func (s *shared) runOf(t *testing.T) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		s.runs, s.run = map[string]int{}, map[*testing.T]int{}
	}
	if n, ok := s.run[t]; ok {
		return n
	}
	n := s.runs[t.Name()]
	s.runs[t.Name()]++
	s.run[t] = n
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.run, t)
	})
	return n
}

// of returns the server of the n-th run of tests.
func (s *shared) of(n int) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.running) <= n {
		p, err := s.start()
		if err != nil {
			return nil, err
		}
		s.running = append(s.running, p)
	}
	return s.running[n], nil
}

// writeBucket creates a bucket with a file to import and one of items to put.
func writeBucket(buckets string) error {
	bucket := filepath.Join(buckets, "conformance")
	if err := os.MkdirAll(bucket, 0o777); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"items.csv": "pk,sk,text\na,1,one\na,2,two\n",
		"bulk.json": `{"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}, "text": {"S": "one"}}}
{"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}, "ConditionExpression": "attribute_not_exists(pk)"}
{"Item": {"pk": {"S": "a"}, "sk": {"N": "2"}}}
`,
	} {
		if err := os.WriteFile(filepath.Join(bucket, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func failed(what string, err error) int {
	fmt.Fprintf(os.Stderr, "conformance: %s: %v\n", what, err)
	return 1
}

// process is a running `tabletop serve`.
type process struct {
	*exec.Cmd
	exports map[string]string // the variables that it prints for export
}

// serve starts `tabletop serve` and waits until it is ready.
func serve(args ...string) (*process, error) {
	p := &process{Cmd: exec.Command(binary, append([]string{"serve"}, args...)...)}
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	ready, err := serveout.Read(out)
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
	p.exports = ready.Exports
	return p, nil
}

// stop ends the server as a user does.
func (p *process) stop() error {
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.Wait()
}

// kill ends the server in the middle of its work.
func (p *process) kill() error {
	if err := p.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := p.Wait(); err != nil && p.ProcessState == nil {
		return err
	}
	return nil
}
