package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestMain also lets the test binary act as `cbtemulator`.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cbtemulator": main})
}

// TestRun starts the binary with the flags of scripts, calls the printed address, and stops it.
func TestRun(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s") // the path of a socket has at most about 100 bytes
	for _, tc := range []struct {
		name    string
		args    []string
		address string // prefix of the printed address
	}{
		{"defaults", []string{"-port", "0"}, "127.0.0.1:"},
		{"two dashes", []string{"--host=localhost", "--port=0"}, ""},
		{"brackets", []string{"-host", "[127.0.0.1]", "-port", "0"}, "127.0.0.1:"},
		{"IPv6 in brackets", []string{"-host", "[::1]", "-port", "0"}, "[::1]:"},
		{"IPv6", []string{"-host", "::1", "-port", "0"}, "[::1]:"},
		{"address", []string{"-address", "127.0.0.1:0", "-host", "nowhere.invalid", "-port", "1"}, "127.0.0.1:"},
		{"Unix socket", []string{"-address", socket}, socket},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(tc.address, "::1") {
				lis, err := net.Listen("tcp", "[::1]:0")
				if err != nil {
					t.Skipf("no IPv6 here: %v", err)
				}
				_ = lis.Close()
			}
			for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
				runOnce(t, tc.args, tc.address, sig)
			}
		})
	}
}

func runOnce(t *testing.T, args []string, address string, sig os.Signal) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cbtemulator", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(stdout)
	ready, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("no line: %v, %s", err, stderr.String())
	}
	got, ok := strings.CutPrefix(strings.TrimSuffix(ready, "\n"), "Cloud Bigtable emulator running on ")
	if !ok || !strings.HasPrefix(got, address) {
		t.Fatalf("its line is %q, want the address %s", ready, address)
	}
	target := "passthrough:///" + got
	if strings.Contains(got, "/") {
		target = "unix:" + got
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{
		Parent: "projects/p/instances/i", TableId: "t", Table: &btapb.Table{},
	})
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Error(err)
	}
	if want := strings.TrimSuffix(ready, "\n") + " is now shutting down\n"; string(rest) != want {
		t.Errorf("after %v it says %q, want %q", sig, rest, want)
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("after %v: %v, and on stderr %q", sig, err, stderr.String())
	}
}

// TestRefused: configurations that cannot be served, with the errors.
func TestRefused(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	_, port, err := net.SplitHostPort(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-port", port}, exitFailed, "failed to start emulator: listen tcp 127.0.0.1:" + port},
		{[]string{"-address", "nowhere"}, exitFailed, "failed to start emulator: "},
		{[]string{"-port", "65536"}, exitBadFlag, "65536"},
		{[]string{"-port", "-1"}, exitBadFlag, "-port"},
		{[]string{"-prot", "1"}, exitBadFlag, "-prot"},
		{[]string{"9000"}, exitBadFlag, `"9000"`},
		{[]string{"-help"}, exitStopped, "-address"},
	} {
		out, err := exec.CommandContext(t.Context(), "cbtemulator", tc.args...).CombinedOutput()
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		}
		if code != tc.code || !strings.Contains(string(out), tc.says) {
			t.Errorf("%v: exit code %d, %s", tc.args, code, out)
		}
	}
}
