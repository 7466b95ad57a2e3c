package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/migrate/report"
)

// tabletop runs a command and returns its output and exit code. It runs within this process, because
// the start of another one takes longer than most commands.
func tabletop(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	return runHere(t, &program{}, args)
}

// sleepLess waits a hundredth of d. It is the sleep of commands whose waits are of no use: their server is
// unreachable for sure, or no other process uses their tables.
func sleepLess(ctx context.Context, d time.Duration) error { return sleep(ctx, d/100) }

// tabletopInHurry is like tabletop, with short waits.
func tabletopInHurry(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	return runHere(t, &program{sleep: sleepLess}, args)
}

// runHere runs a command of p, without an input.
func runHere(t *testing.T, p *program, args []string) (out string, code int) {
	t.Helper()
	var both printed
	p.stdin, p.stdout, p.stderr = strings.NewReader(""), &both, &both
	code = p.run(t.Context(), args)
	return both.String(), code
}

// tabletopWith is like tabletop, with an input, and the outputs apart.
func tabletopWith(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs strings.Builder
	p := &program{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs}
	code = p.run(t.Context(), args)
	return out.String(), errs.String(), code
}

// tabletopIn is like tabletop, in a process of its own with additional environment variables.
func tabletopIn(t *testing.T, env []string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tabletop", args...)
	cmd.Env = append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text), exitEqual
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A target like Cloud Bigtable: an instance of a project, over TLS with a private certificate,
// and with a token. The same loader and verifier work, and so does an export.
func TestMigrate_Cloud(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, _ := certificate(t)
	token := writeFile(t, dir, "token", "a-static-token\n")
	ports := filepath.Join(dir, "ports.json")
	serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--tls-cert", cert, "--tls-key", key, "--token-file", token, "--port-file", ports)
	text, err := os.ReadFile(ports)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Bigtable string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	const target = "projects/my-project/instances/my-instance"
	address := found.Bigtable
	connect := []string{"--endpoint", address, "--ca", cert, "--token-file", token}
	items := writeFile(t, dir, "items.jsonl", `{"Item":{"id":{"S":"a"},"n":{"N":"1"},"tags":{"SS":["x"]}}}`+"\n"+`{"Item":{"id":{"S":"b"},"l":{"L":[{"S":"y"},{"BOOL":true}]}}}`+"\n")
	mapping := filepath.Join(dir, "m.yaml")
	run := func(want int, text string, args ...string) {
		t.Helper()
		out, code := tabletopInHurry(t, append([]string{"migrate"}, args...)...)
		if code != want || !strings.Contains(out, text) {
			t.Fatalf("tabletop migrate %s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), code, want, text, out)
		}
	}
	run(exitEqual, "row key", "infer", "--source", items, "-o", mapping)
	source := []string{"--source", items, "--mapping", mapping}
	with := func(flags ...[]string) (all []string) {
		for _, f := range flags {
			all = append(all, f...)
		}
		return all
	}
	// Missing or wrong tokens, and untrusted certificates, are rejected.
	run(exitEnvironment, "Unauthenticated", with([]string{"load", "--target", target, "--endpoint", address, "--ca", cert, "--token-file", writeFile(t, dir, "other", "another")}, source)...)
	run(exitEnvironment, "--target "+address, with([]string{"load", "--target", address}, source)...)
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	for verb, flag := range map[string]string{"load": "--target", "verify": "--against"} {
		run(exitEnvironment, flag+" "+address+": the Bigtable rejects the credentials", with([]string{verb, flag, address, "--ca", cert}, source)...)
		run(exitEnvironment, "the server is not a Bigtable", with([]string{verb, flag, web.Listener.Addr().String()}, source)...)
		run(exitEnvironment, "target 127.0.0.1:1 fails (", with([]string{verb, flag, "127.0.0.1:1"}, source)...)
		run(exitEnvironment, "for plain text use HOST:PORT without --ca", with([]string{verb, flag, web.Listener.Addr().String(), "--ca", cert}, source)...)
		run(exitEnvironment, "pass the trusted ones (--ca FILE)", with([]string{verb, flag, target, "--endpoint", address, "--token-file", token}, source)...)
	}

	check := with([]string{"load", "--check", "--target", target}, connect, source)
	run(exitEqual, "ok: tables: items does not exist yet", check...)
	run(exitEnvironment, "rejects the credentials", with([]string{"load", "--check", "--target", target, "--endpoint", address, "--ca", cert, "--token-file", filepath.Join(dir, "other")}, source)...)
	run(exitBadInput, "--check needs a --target", with([]string{"load", "--check", "--target", "embedded"}, source)...)
	run(exitEqual, "2 items, 2 rows, 4 cells written", with([]string{"load", "--target", target}, connect, source)...)
	run(exitEqual, "ok: tables: items has the expected garbage-collection rules", check...)
	run(exitEqual, "4 cells already there, 0 written", with([]string{"load", "--target", target}, connect, source)...)
	run(exitEqual, "2 items, 2 rows, 0 differences", with([]string{"verify", "--against", target}, connect, source)...)
	run(exitEqual, "2 items, 2 rows, 0 differences", with([]string{"verify", "--compress", "--against", target}, connect, source)...)
	// The same target as an address, with that project and instance.
	named := []string{"--project", "my-project", "--instance", "my-instance", "--ca", cert, "--token-file", token}
	run(exitEqual, "0 differences", with([]string{"verify", "--against", address}, named, source)...)
	run(exitDifferences, "MissingRow", with([]string{"verify", "--against", address, "--ca", cert, "--token-file", token, "--source", another(t, dir, address, cert, token, source), "--mapping", mapping})...)

	run(exitEqual, "2 items of 2 rows in 1 file\n", with([]string{"reverse", "--target", target, "--mapping", mapping, "-o", filepath.Join(dir, "back"), "--export-time", "2010-01-01T00:00:00Z"}, connect)...)
	run(exitEqual, "0 differences", with([]string{"verify", "--against", target, "--source", filepath.Join(dir, "back"), "--mapping", mapping}, connect)...)
	run(exitEqual, "0 differences", with([]string{"diff", filepath.Join(dir, "back"), target + "/tables/items", "--mapping", mapping}, connect)...)
	run(exitEqual, "2 rows, 0 differences", with([]string{"diff", target + "/tables/items", target + "/tables/items"}, connect)...)
}

// another loads the source into the default instance of the server, and returns another source
// with one more item.
func another(t *testing.T, dir, address, cert, token string, source []string) string {
	t.Helper()
	out, code := tabletop(t, append([]string{"migrate", "load", "--target", address, "--ca", cert, "--token-file", token}, source...)...)
	if code != exitEqual {
		t.Fatal(out)
	}
	return writeFile(t, dir, "more.jsonl", `{"Item":{"id":{"S":"a"},"n":{"N":"1"},"tags":{"SS":["x"]}}}`+"\n"+`{"Item":{"id":{"S":"b"},"l":{"L":[{"S":"y"},{"BOOL":true}]}}}`+"\n"+`{"Item":{"id":{"S":"c"},"n":{"N":"3"}}}`+"\n")
}

// Without --token-file, application default credentials are used: here of a user, with the
// token server named in the file.
func TestMigrate_DefaultCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("grant_type") != "refresh_token" || r.FormValue("refresh_token") != "of-a-user" {
			http.Error(w, "no token for that", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"a-static-token","token_type":"Bearer","expires_in":3600}`)
	}))
	defer tokens.Close()
	credentials := func(refresh string) []string {
		return []string{"GOOGLE_APPLICATION_CREDENTIALS=" + writeFile(t, dir, refresh+".json",
			`{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"`+refresh+`","token_uri":"`+tokens.URL+`"}`)}
	}
	cert, key, _ := certificate(t)
	ports := filepath.Join(dir, "ports.json")
	serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--tls-cert", cert, "--tls-key", key,
		"--token-file", writeFile(t, dir, "token", "a-static-token\n"), "--port-file", ports)
	text, err := os.ReadFile(ports)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Bigtable string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	items := writeFile(t, dir, "items.jsonl", `{"id":{"S":"a"},"n":{"N":"1"}}`)
	for _, c := range []struct {
		refresh, command, flag string
		code                   int
		want                   string
	}{
		{"of-a-user", "load", "--target", exitEqual, "1 item, 1 row, 1 cell written"},
		{"of-a-user", "load", "--target", exitEqual, "1 cell already there, 0 written"},
		{"of-a-user", "verify", "--against", exitEqual, "1 item, 1 row, 0 differences"},
		{"of-another", "load", "--target", exitEnvironment, "no token for that"},
	} {
		out, code := tabletopIn(t, credentials(c.refresh), "migrate", c.command, items, "--key", "id",
			c.flag, "projects/my-project/instances/my-instance", "--endpoint", found.Bigtable, "--ca", cert)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s by the credentials %s: exit code %d, want %d and %q:\n%s", c.command, c.refresh, code, c.code, c.want, out)
		}
	}
}

// TestMigrate_AppProfile: a missing app profile ends a load before it creates anything, and a
// verification before it finds anything.
func TestMigrate_AppProfile(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	items := writeFile(t, t.TempDir(), "items.jsonl", `{"id":{"S":"a"},"n":{"N":"1"}}`)
	for _, c := range []struct {
		command, flag, profile string
		code                   int
		want                   string
	}{
		{"load", "--target", "pace", exitEnvironment, "app profile pace of "},
		{"verify", "--against", "", exitDifferences, "has no tables"},
		{"load", "--target", "default", exitEqual, "1 cell written"},
		{"verify", "--against", "pace", exitEnvironment, "app profile pace of "},
		{"verify", "--against", "default", exitEqual, "0 differences"},
	} {
		out, code := tabletop(t, "migrate", c.command, items, "--key", "id", c.flag, s.env["BIGTABLE_EMULATOR_HOST"], "--app-profile", c.profile)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s by the app profile %q: exit code %d, want %d and %q:\n%s", c.command, c.profile, code, c.code, c.want, out)
		}
	}
}

// Ctrl-C ends every command that waits for a server. It says so, exits 3 and leaves nothing
// unfinished.
func TestMigrate_Interrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	items := writeFile(t, dir, "items.jsonl", `{"id":{"S":"a"},"n":{"N":"1"}}`)
	mapping := filepath.Join(dir, "m.yaml")
	if out, code := tabletop(t, "migrate", "infer", items, "--key", "id", "-o", mapping); code != exitEqual {
		t.Fatal(out)
	}
	for _, args := range [][]string{
		{"load", items, "--mapping", mapping, "--target", "SILENT", "--dead-letter", "dead.jsonl"},
		{"verify", items, "--mapping", mapping, "--against", "SILENT", "--report", "json=report.json"},
		{"diff", items, "SILENT", "--mapping", mapping},
		{"reverse", "--target", "SILENT", "--mapping", mapping, "-o", "back"},
		{"reverse", "--target", "SILENT", "-o", "back"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = silent.Close() }()
			args := append([]string{"migrate"}, args...)
			for i, arg := range args {
				args[i] = strings.ReplaceAll(arg, "SILENT", silent.Addr().String())
			}
			cmd := exec.CommandContext(t.Context(), "tabletop", args...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "TMPDIR="+cmd.Dir)
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			conn, err := silent.Accept() // it sends a request without an answer
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code is checked
			want := "tabletop: interrupted\n"
			if args[1] == "load" {
				want = "tabletop: interrupted; run the same command again to write the missing rows (with --checkpoint FILE, a load resumes where it stopped)\n"
			}
			if code := cmd.ProcessState.ExitCode(); code != exitEnvironment || out.String() != want {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, exitEnvironment, want, out.String())
			}
			left, err := os.ReadDir(cmd.Dir)
			if err != nil || len(left) > 0 {
				t.Errorf("%v is left behind, error %v", left, err)
			}
		})
	}
}

// A loader that did not even create the table gets a report like others, which lists what is
// missing.
func TestMigrate_AgainstNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	report := filepath.Join(dir, "out.json")
	out, code := tabletop(t, "migrate", "verify", "../../fixtures/subjects/s1-catalog", "--against", s.env["BIGTABLE_EMULATOR_HOST"], "--report", "json="+report)
	if code != exitDifferences || !strings.Contains(out, "MissingTable fixture s1-catalog table products: want 5 items, 15 cells, got nothing: projects/tabletop/instances/tabletop has no tables") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Differences int
		Failures    []struct{ Kind, Check, Fixture string }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Differences != 11 || len(got.Failures) != 11 {
		t.Errorf("%d differences, %d listed; want 11: the table, five rows and five patterns", got.Differences, len(got.Failures))
	}
	for _, f := range got.Failures {
		if f.Kind == "" || f.Check == "" || f.Fixture != "s1-catalog" {
			t.Errorf("a failure has no place: %+v", f)
		}
	}
}

// A report is colored only on a terminal.
func TestPrintReport_Color(t *testing.T) {
	t.Parallel()
	r := &report.Report{Checks: []report.Check{{Name: "one", State: report.CheckOK}, {Name: "two", State: report.CheckFailed, Differences: 1}, {Name: "three", State: report.CheckSkipped}}}
	for color, want := range map[bool][]string{
		true:  {"\x1b[32mok\x1b[0m   one", "\x1b[31mFAIL\x1b[0m two", "\x1b[33mskip\x1b[0m three"},
		false: {"\nok   one", "\nFAIL two", "\nskip three"},
	} {
		var out strings.Builder
		(&program{stdout: &out, color: color}).printReport(r)
		for _, line := range want {
			if !strings.Contains(out.String(), line) {
				t.Errorf("color %t: no %q in\n%q", color, line, out.String())
			}
		}
		if !color && strings.Contains(out.String(), "\x1b") {
			t.Errorf("colors where nobody asked for them: %q", out.String())
		}
	}
}

// Without any credentials the message has advice.
func TestMigrate_NoCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	items := writeFile(t, dir, "items.jsonl", `{"id":{"S":"a"}}`)
	for flag, args := range map[string][]string{
		"--token-file":        {"migrate", "load", "--source", items},
		"--target-token-file": {"serve", "--dynamodb", "127.0.0.1:0", "--check"},
	} {
		cmd := exec.CommandContext(t.Context(), "tabletop", append(args, "--target", "projects/p/instances/i")...)
		cmd.Env = append(os.Environ(), "GOOGLE_APPLICATION_CREDENTIALS="+filepath.Join(dir, "none.json"), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitEnvironment {
			t.Errorf("%s: %v, want exit code %d", args[0], err, exitEnvironment)
		}
		if !strings.Contains(string(out), "gcloud auth application-default login, or "+flag+")") {
			t.Errorf("%s says: %s", args[0], out)
		}
	}
}
