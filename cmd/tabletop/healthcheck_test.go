package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// health runs healthcheck, and returns its exit code and output. With variables, it runs in a process
// that has only these.
func health(t *testing.T, env []string, args ...string) (code int, out string) {
	t.Helper()
	args = append([]string{"healthcheck"}, args...)
	if env == nil {
		out, code = tabletop(t, args...)
		return code, out
	}
	cmd := exec.CommandContext(t.Context(), "tabletop", args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// TestHealthcheck checks servers by each way to name them.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	otherCert, _, _ := certificate(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("open-sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	plainPorts, securePorts := filepath.Join(t.TempDir(), "ports.json"), filepath.Join(t.TempDir(), "ports.json")
	plain := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--port-file", plainPorts)
	serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--port-file", securePorts,
		"--tls-cert", cert, "--tls-key", key, "--token-file", token)
	alone := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--like", "dynamodb-local")
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()

	bigtable := plain.env["BIGTABLE_EMULATOR_HOST"]
	dynamoDB := strings.TrimPrefix(plain.env["AWS_ENDPOINT_URL_DYNAMODB"], "http://")
	aloneAt := strings.TrimPrefix(alone.env["AWS_ENDPOINT_URL_DYNAMODB"], "http://")
	_, port, _ := strings.Cut(dynamoDB, ":")
	both := "healthy: Bigtable " + bigtable + ", DynamoDB http://" + dynamoDB + "\n"
	for _, tc := range []struct {
		name string
		env  []string
		args []string
		code int
		want string
	}{
		{"flags", nil, []string{"--bigtable", bigtable, "--dynamodb", dynamoDB}, exitEqual, both},
		{"one flag", nil, []string{"--bigtable", bigtable}, exitEqual, "healthy: Bigtable " + bigtable + "\n"},
		{"the variables of serve's flags", []string{"TABLETOP_BIGTABLE=off", "TABLETOP_DYNAMODB=0.0.0.0:" + port}, nil, exitEqual, "healthy: DynamoDB http://" + dynamoDB + "\n"},
		{"the variables of clients", []string{"BIGTABLE_EMULATOR_HOST=" + bigtable, "AWS_ENDPOINT_URL_DYNAMODB=http://" + dynamoDB}, nil, exitEqual, both},
		{"the port file", []string{"BIGTABLE_EMULATOR_HOST=127.0.0.1:1"}, []string{"--port-file", plainPorts}, exitEqual, both},
		{"TLS and a token", nil, []string{"--port-file", securePorts, "--tls-cert", cert, "--token-file", token}, exitEqual, "healthy: Bigtable "},
		{"in place of DynamoDB Local", nil, []string{"--dynamodb", aloneAt}, exitEqual, "healthy: DynamoDB http://" + aloneAt + "\n"},
		{"no token", nil, []string{"--port-file", securePorts, "--tls-cert", cert}, exitEnvironment, "is not healthy: "},
		{"another certificate", nil, []string{"--port-file", securePorts, "--tls-cert", otherCert, "--token-file", token}, exitEnvironment, "does not present the certificate in"},
		{"no certificate", nil, []string{"--port-file", securePorts, "--token-file", token}, exitEnvironment, "name its certificate (--tls-cert FILE)"},
		{"another server", nil, []string{"--dynamodb", other.Listener.Addr().String()}, exitEnvironment, "is not healthy: it answered 404"},
		{"no server", nil, []string{"--bigtable", closed.Addr().String(), "--dynamodb", closed.Addr().String()}, exitEnvironment, "the DynamoDB endpoint at http://" + closed.Addr().String() + " is not healthy"},
		{"no port file", nil, []string{"--port-file", "none.json"}, exitEnvironment, "none.json"},
		{"not a port file", nil, []string{"--port-file", cert}, exitBadInput, "is not the port file of a server"},
		{"not a certificate", nil, []string{"--tls-cert", token}, exitBadInput, "has no certificate in PEM"},
		{"nothing", nil, []string{"--bigtable", "off"}, exitBadInput, "no endpoint is left to check"},
		{"port 0", nil, []string{"--bigtable", "127.0.0.1:0"}, exitBadInput, "--bigtable: with port 0 the server chooses a port"},
		{"time", nil, []string{"--wait=-1s"}, exitBadInput, "--wait: -1s must not be negative"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if code, out := health(t, tc.env, tc.args...); code != tc.code || !strings.Contains(out, tc.want) {
				t.Errorf("exits %d, want %d, and prints %q, want %q", code, tc.code, out, tc.want)
			}
		})
	}
}

// TestHealthcheck_Wait starts a check before its server.
func TestHealthcheck_Wait(t *testing.T) {
	t.Parallel()
	ports := filepath.Join(t.TempDir(), "ports.json")
	var out strings.Builder
	check := exec.CommandContext(t.Context(), "tabletop", "healthcheck", "--port-file", ports, "--wait", "1h")
	check.Stdout, check.Stderr = &out, &out
	if err := check.Start(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--port-file", ports)
	if err := check.Wait(); err != nil || !strings.HasPrefix(out.String(), "healthy: Bigtable "+s.env["BIGTABLE_EMULATOR_HOST"]) {
		t.Errorf("%v: %s", err, &out)
	}
	if code := s.end(t, syscall.SIGTERM); code != exitEqual {
		t.Errorf("the server exits %d", code)
	}
	if code, out := health(t, nil, "--port-file", ports); code != exitEnvironment {
		t.Errorf("after the end of the server: %d: %s", code, out)
	}
}
