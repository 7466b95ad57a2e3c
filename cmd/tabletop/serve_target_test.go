package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServe_Cloud serves over a target that looks like Cloud Bigtable, looks at it
// first, and is told what is wrong with others.
func TestServe_Cloud(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, _ := certificate(t)
	token, other := writeFile(t, dir, "token", "a-static-token\n"), writeFile(t, dir, "other", "another\n")
	ports := filepath.Join(dir, "ports.json")
	serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--tls-cert", cert, "--tls-key", key, "--token-file", token, "--port-file", ports)
	text, err := os.ReadFile(ports)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Bigtable string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	const target = "projects/my-project/instances/my-instance"
	cloud := []string{"--target", target, "--endpoint", found.Bigtable, "--dynamodb", "127.0.0.1:0"}
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", token, "--check"}), exitEqual, "ok: instance: " + target + " is there"},
		{slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", other}), exitEnvironment, "does not take the credentials"},
		{slices.Concat(cloud, []string{"--target-token-file", token}), exitEnvironment, "certificate"},
		{slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", token, "--app-profile", "mine"}), exitEnvironment, "there is no app profile mine"},
		{[]string{"--target", web.Listener.Addr().String(), "--dynamodb", "127.0.0.1:0", "--check"}, exitEnvironment, "--target"},
		{[]string{"--dynamodb", "127.0.0.1:0", "--check"}, exitBadInput, "are of --target"},
		{[]string{"--target", "projects/p", "--check"}, exitBadInput, "neither HOST:PORT nor projects/P/instances/I"},
	} {
		out, code := tabletop(t, append([]string{"serve"}, c.flags...)...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("serve %s: exit code %d, want %d and %q:\n%s", strings.Join(c.flags, " "), code, c.code, c.want, out)
		}
	}
	s := serve(t, slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", token})...)
	if s.env["AWS_ENDPOINT_URL_DYNAMODB"] == "" || s.env["BIGTABLE_EMULATOR_HOST"] != "" {
		t.Errorf("it prints %v", s.env)
	}
}
