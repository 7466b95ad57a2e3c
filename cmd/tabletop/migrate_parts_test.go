package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/s3export"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// exportInFiles writes an export to S3 of n items in the given number of data files, and a
// mapping.
func exportInFiles(t *testing.T, n, files int) (export, mapping string) {
	t.Helper()
	dir := t.TempDir()
	export = filepath.Join(dir, "AWSDynamoDB", "01716790307109-5f9d6aaa")
	if err := os.MkdirAll(filepath.Join(export, "data"), 0o777); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for f := range files {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		count := 0
		for i := f; i < n; i += files {
			count++
			_, _ = fmt.Fprintf(z, `{"Item":{"id":{"S":"%05d"},"n":{"N":"%d"}}}`+"\n", i, i) // a buffer never fails
		}
		_ = z.Close()
		name := fmt.Sprintf("file%d.json.gz", f)
		writeFile(t, filepath.Join(export, "data"), name, packed.String())
		_, _ = fmt.Fprintf(&list, `{"itemCount":%d,"md5Checksum":"%s","etag":"x","dataFileS3Key":"AWSDynamoDB/01716790307109-5f9d6aaa/data/%s"}`+"\n", count, s3export.ChecksumOf(packed.Bytes()), name)
	}
	writeFile(t, export, "manifest-files.json", list.String())
	writeFile(t, export, "manifest-summary.json", fmt.Sprintf(`{"version":"2020-06-30","exportArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/Items/export/01716790307109-5f9d6aaa",
		"tableArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/Items","exportTime":"2024-05-27T06:11:47.109Z","s3Bucket":"bucket","s3Prefix":"",
		"manifestFilesS3Key":"AWSDynamoDB/01716790307109-5f9d6aaa/manifest-files.json","itemCount":%d,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}`, n))
	mapping = filepath.Join(dir, "mapping.yaml")
	if out, code := tabletop(t, "migrate", "infer", export, "--key", "id", "-o", mapping); code != exitEqual {
		t.Fatalf("infer: exit %d: %s", code, out)
	}
	return export, mapping
}

// TestMigrate_Parts loads and verifies an export in concurrent processes. One of the loads is
// killed between two writes, and another process completes its part.
func TestMigrate_Parts(t *testing.T) {
	t.Parallel()
	parts := 4
	if long.Enabled() {
		parts = 10
	}
	const items = 300
	export, mapping := exportInFiles(t, items, 13)
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	folder := t.TempDir()
	writes := 0
	target := relayTo(t, s.env["BIGTABLE_EMULATOR_HOST"], "Items", func() bool { writes++; return writes == 2 })
	for _, verb := range [][]string{{"load", "--target", target.addr}, {"verify", "--against", target.addr}} {
		args := func(more ...string) []string {
			return slices.Concat([]string{"migrate"}, verb, []string{"--source", export, "--mapping", mapping, "--checkpoint", folder}, more)
		}
		finish := func(code int, want string) {
			t.Helper()
			if out, got := tabletop(t, args("--finish")...); got != code || !strings.Contains(out, want) {
				t.Errorf("%s --finish: exit %d, want %d and %q: %s", verb[0], got, code, want, out)
			}
		}
		finish(exitBadInput, "the folder holds no parts of a "+verb[0])
		var working sync.WaitGroup
		part := func(i int) {
			working.Go(func() {
				part := fmt.Sprintf("%d/%d", i, parts)
				if out, code := tabletopInHurry(t, args("--part", part)...); code != exitEqual || !strings.Contains(out, "part "+part+" is complete") {
					t.Errorf("%s --part %s: exit %d: %s", verb[0], part, code, out)
				}
			})
		}
		if verb[0] == "load" {
			killed := exec.CommandContext(t.Context(), "tabletop", args("--part", fmt.Sprintf("1/%d", parts), "--max-rows-per-second", "20", "--call-timeout", "1h")...)
			ended := begin(t, killed)
			select {
			case <-target.held:
			case err := <-ended:
				t.Fatalf("the load of part 1 ended before its second write: %v", err)
			}
			for i := 2; i <= parts; i++ {
				part(i)
			}
			working.Wait()
			kill(t, killed, ended)
			finish(exitBadInput, fmt.Sprintf("these are not complete: 1/%d (begun)", parts))
			part(1)
		} else {
			for i := range parts {
				part(i + 1)
			}
		}
		working.Wait()
		finish(exitEqual, "300 items, 300 rows")
	}
}

// begin starts a command, and returns a channel that receives its error at the end.
func begin(t *testing.T, cmd *exec.Cmd) (ended <-chan error) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }()
	return end
}

// kill kills a command that has not ended.
func kill(t *testing.T, cmd *exec.Cmd, ended <-chan error) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("%q ended before it was killed: %v", cmd.Args, err)
	}
}

func TestMigrate_PartsFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--part", "4/3"}, `"4/3" is not a part: expected I/N`},
		{[]string{"--part", "1/3", "--finish"}, "--part and --finish cannot be combined"},
		{[]string{"--part", "1/3"}, "--part needs the folder of the parts: --checkpoint DIR"},
		{[]string{"--finish"}, "--finish needs the folder of the parts"},
		{[]string{"--part", "1/3", "--checkpoint", "d", "--fail-on", "lint=warn"}, "lint needs all items"},
		{[]string{"--max-rows-per-second=-1"}, "--max-rows-per-second is -1, want 1 or more"},
		{[]string{"--max-rows-per-second=0"}, "--max-rows-per-second is 0, want 1 or more"},
		{[]string{"--tablets", "5000"}, "--tablets is 5000, want 1 to 1000"},
		{[]string{"--tablets", "0"}, "--tablets is 0, want 1 to 1000"},
		{[]string{"--instance", "x/y"}, `--instance: "x/y" must not contain a slash`},
		{[]string{"--project", "a/b"}, `--project: "a/b" must not contain a slash`},
	} {
		out, code := tabletop(t, append([]string{"migrate", "load", "--source", "x.json", "--mapping", "m.yaml", "--target", "127.0.0.1:1"}, c.flags...)...)
		if code != exitBadInput || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.flags, code, out, exitBadInput, c.want)
		}
	}
	for want, flags := range map[string][]string{
		"--part needs --against":                       {"--part", "1/3", "--checkpoint", "d"},
		"--checkpoint needs --part or --finish":        {"--checkpoint", "d"},
		"--part cannot be combined with --fail-on or ": {"--part", "1/3", "--checkpoint", "d", "--rules", "r", "--against", "127.0.0.1:1"},
	} {
		out, code := tabletop(t, append([]string{"migrate", "verify", "--source", "x.json", "--mapping", "m.yaml"}, flags...)...)
		if code != exitBadInput || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", flags, code, out, exitBadInput, want)
		}
	}
}
