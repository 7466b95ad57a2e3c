package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

// say opens a connection and sends text.
func say(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A stop does not wait for clients that send nothing or incomplete requests: the grace here is
// longer than any test.
func TestServe_StopUnasked(t *testing.T) {
	t.Parallel()
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--grace", "24h")
	web, err := url.Parse(s.env["AWS_ENDPOINT_URL_DYNAMODB"])
	if err != nil {
		t.Fatal(err)
	}
	conns := []net.Conn{
		say(t, s.env["BIGTABLE_EMULATOR_HOST"], ""),
		say(t, s.env["BIGTABLE_EMULATOR_HOST"], "PRI * HTTP/2.0\r\n\r\nSM\r\n"),
		say(t, web.Host, ""),
		say(t, web.Host, "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: Dyn"),
	}
	half := say(t, web.Host, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(half).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // the body is being read
		t.Fatalf("%q, error %v", line, err)
	}
	// An answered client, which may send more.
	again := say(t, web.Host, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if _, err := bufio.NewReader(again).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if code := s.end(t, syscall.SIGTERM); code != 0 || !s.quiet() {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
	for i, conn := range append(conns, half, again) {
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("connection %d ends with %v", i, err)
		}
	}
}

// A stop waits for requests, and says so. A second signal ends it at once, even if Ctrl-C is
// ignored, as in a script's background process.
func TestServe_StopTwice(t *testing.T) {
	t.Parallel()
	args := []string{"tabletop", "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--grace", "24h"}
	t.Run("in a terminal", func(t *testing.T) {
		t.Parallel()
		if signal.Ignored(os.Interrupt) {
			t.Skip("Ctrl-C is ignored by whoever started the tests, and so by what they start")
		}
		state := stopTwice(t, args...)
		if status := state.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
			t.Errorf("it ended as %v, want by the second signal", state)
		}
	})
	t.Run("in the background", func(t *testing.T) {
		t.Parallel()
		state := stopTwice(t, append([]string{"sh", "-c", `trap "" INT; exec "$@"`, "sh"}, args...)...)
		if got, want := state.ExitCode(), exitSignaled+int(syscall.SIGINT); got != want {
			t.Errorf("it ended as %v, want with code %d", state, want)
		}
	})
}

// stopTwice stops a server by two signals; after the first, it waits.
func stopTwice(t *testing.T, args ...string) *os.ProcessState {
	t.Helper()
	stderr, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stderr = w
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out, err := serveout.Read(stdout)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dialBigtable(out.Exports["BIGTABLE_EMULATOR_HOST"], "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	createTable(t, conn, "t")
	if err := mutate(t.Context(), conn, "t", "row"); err != nil {
		t.Fatal(err)
	}
	// A call whose message never arrives.
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, btpb.Bigtable_ReadRows_FullMethodName, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := mutate(t.Context(), conn, "t", "row"); err != nil { // the earlier call has arrived
		t.Fatal(err)
	}
	for _, want := range []string{"tabletop: waiting for requests in flight, at most 24h0m0s; Ctrl-C ends them at once\n", ""} {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			break
		}
		if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || line != want {
			t.Fatalf("it says %q, error %v; want %q", line, err, want)
		}
	}
	_ = cmd.Wait() // the test checks how it ended
	if err := stream.RecvMsg(&btpb.ReadRowsResponse{}); status.Code(err) != codes.Unavailable && !errors.Is(err, context.Canceled) {
		t.Errorf("the call ends with %v", err)
	}
	return cmd.ProcessState
}
