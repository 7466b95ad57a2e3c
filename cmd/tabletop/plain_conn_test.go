package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A TLS server silently closes a connection in plain text: the error says so at once, with
// advice.
func TestDeadlines_ServerSpeaksTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, _ := certificate(t)
	other, _, _ := certificate(t)
	ports := filepath.Join(dir, "ports.json")
	serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--tls-cert", cert, "--tls-key", key, "--port-file", ports)
	text, err := os.ReadFile(ports)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Bigtable string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	items := writeFile(t, dir, "items.jsonl", `{"id":{"S":"a"}}`)
	token := writeFile(t, dir, "token", "a-static-token\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"name the certificates to trust (--ca FILE)", []string{"migrate", "load", "--key", "id", "--source", items, "--target", found.Bigtable}},
		{"name the certificates to trust (--ca FILE)", []string{"migrate", "verify", "--key", "id", "--source", items, "--against", found.Bigtable, "--token-file", token}},
		{"name the certificates to trust (--ca FILE)", []string{"serve", "--target", found.Bigtable, "--dynamodb", "127.0.0.1:0"}},
	} {
		out, code := tabletop(t, c.args...)
		if code != exitEnvironment || !strings.Contains(out, "the server uses TLS, but was called in plain text: "+c.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", strings.Join(c.args, " "), code, exitEnvironment, c.want, out)
		}
		if strings.Contains(out, "sent again") {
			t.Errorf("%s waits for a server that never answers:\n%s", c.args[1], out)
		}
	}
	// With its certificate, the endpoint works over it.
	front := serveHere(t, "--target", found.Bigtable, "--ca", cert, "--dynamodb", "127.0.0.1:0")
	if front.env["AWS_ENDPOINT_URL_DYNAMODB"] == "" || front.env["BIGTABLE_EMULATOR_HOST"] != "" { // its clients speak plain gRPC
		t.Errorf("exports %v", front.env)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"certificate", exitEnvironment, []string{"--target", found.Bigtable, "--ca", other}},
		{"--ca: ", exitBadInput, []string{"--target", found.Bigtable, "--ca", filepath.Join(dir, "missing")}},
		{"contains no PEM certificate", exitBadInput, []string{"--target", found.Bigtable, "--ca", token}},
		{"--ca needs --target", exitBadInput, []string{"--ca", cert}},
	} {
		out, code := tabletop(t, append([]string{"serve", "--dynamodb", "127.0.0.1:0"}, c.args...)...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("serve %s: exit code %d, want %d and %q:\n%s", strings.Join(c.args, " "), code, c.code, c.want, out)
		}
	}
	// An unreachable server is not taken for a TLS server.
	out, code := tabletop(t, "serve", "--target", "127.0.0.1:1", "--dynamodb", "127.0.0.1:0")
	if code != exitEnvironment || strings.Contains(out, "TLS") {
		t.Errorf("nobody listens: exit code %d:\n%s", code, out)
	}
}
