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
	"time"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// exportInFiles writes an export to S3 of n items in so many data files, and a mapping.
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
			_, _ = fmt.Fprintf(z, `{"Item":{"id":{"S":"%05d"},"n":{"N":"%d"}}}`+"\n", i, i) // a buffer takes all
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

// TestMigrate_Parts loads and verifies an export in ten processes of their own, at once, as
// a person would. One of those that load is killed while it writes, and goes on.
func TestMigrate_Parts(t *testing.T) {
	t.Parallel()
	const parts, items = 10, 300
	export, mapping := exportInFiles(t, items, 13)
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	folder := t.TempDir()
	target := s.env["BIGTABLE_EMULATOR_HOST"]
	for _, verb := range [][]string{{"load", "--target", target}, {"verify", "--against", target}} {
		args := func(more ...string) []string {
			return slices.Concat([]string{"migrate"}, verb, []string{"--source", export, "--mapping", mapping, "--checkpoint", folder}, more)
		}
		finish := func(code int, want string) {
			t.Helper()
			if out, got := tabletop(t, args("--finish")...); got != code || !strings.Contains(out, want) {
				t.Errorf("%s --finish: exit %d, want %d and %q: %s", verb[0], got, code, want, out)
			}
		}
		finish(exitBadInput, "the folder has no part of a "+verb[0])
		var working sync.WaitGroup
		part := func(i int) {
			working.Go(func() {
				part := fmt.Sprintf("%d/%d", i, parts)
				if out, code := tabletop(t, args("--part", part)...); code != exitEqual || !strings.Contains(out, "part "+part+" is complete") {
					t.Errorf("%s --part %s: exit %d: %s", verb[0], part, code, out)
				}
			})
		}
		var slow *exec.Cmd
		for i := range parts {
			if i > 0 || verb[0] != "load" {
				part(i + 1)
				continue
			}
			slow = exec.CommandContext(t.Context(), "tabletop", args("--part", fmt.Sprintf("1/%d", parts), "--max-rows-per-second", "1")...)
			if err := slow.Start(); err != nil {
				t.Fatal(err)
			}
		}
		working.Wait()
		if slow != nil {
			killWriting(t, slow, target, items-24) // of which the part has one file
			finish(exitBadInput, "not all parts are complete: 1/10 (begun) lacking")
			part(1)
			working.Wait()
		}
		finish(exitEqual, "300 items, 300 rows")
	}
}

// killWriting kills a load that writes rows to the table items, beside rows that are there.
func killWriting(t *testing.T, load *exec.Cmd, target string, there int) {
	t.Helper()
	conn, err := dialBigtable(target, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	bt := btclient.New(conn, "tabletop", "tabletop", btclient.Options{})
	rows := 0
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for ; rows <= there; <-look.C {
		rows = 0
		for _, err := range bt.Read(t.Context(), btclient.Read{Table: "Items", Spans: []btclient.Span{{}}}) {
			if err != nil {
				t.Fatal(err)
			}
			rows++
		}
	}
	if err := load.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := load.Wait(); err == nil {
		t.Errorf("the load came to its end with %d rows before it was killed", rows)
	}
}

func TestMigrate_PartsFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--part", "4/3"}, `"4/3" is no part: expected I/N`},
		{[]string{"--part", "1/3", "--finish"}, "--part and --finish exclude each other"},
		{[]string{"--part", "1/3"}, "--part needs the folder of the parts: --checkpoint DIR"},
		{[]string{"--finish"}, "--finish needs the folder of the parts"},
		{[]string{"--part", "1/3", "--checkpoint", "d", "--fail-on", "lint=warn"}, "lint judges all items"},
		{[]string{"--max-rows-per-second=-1"}, "--max-rows-per-second is -1, want 1 or more"},
		{[]string{"--max-rows-per-second=0"}, "--max-rows-per-second is 0, want 1 or more"},
		{[]string{"--tablets", "5000"}, "--tablets is 5000, want 1 to 1000"},
		{[]string{"--tablets", "0"}, "--tablets is 0, want 1 to 1000"},
		{[]string{"--instance", "x/y"}, `--instance: "x/y" has a slash`},
		{[]string{"--project", "a/b"}, `--project: "a/b" has a slash`},
	} {
		out, code := tabletop(t, append([]string{"migrate", "load", "--source", "x.json", "--mapping", "m.yaml", "--target", "127.0.0.1:1"}, c.flags...)...)
		if code != exitBadInput || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.flags, code, out, exitBadInput, c.want)
		}
	}
	for want, flags := range map[string][]string{
		"--part is for --against":                      {"--part", "1/3", "--checkpoint", "d"},
		"--checkpoint is for --part and --finish":      {"--checkpoint", "d"},
		"--part and --fail-on, --rules exclude each o": {"--part", "1/3", "--checkpoint", "d", "--rules", "r", "--against", "127.0.0.1:1"},
	} {
		out, code := tabletop(t, append([]string{"migrate", "verify", "--source", "x.json", "--mapping", "m.yaml"}, flags...)...)
		if code != exitBadInput || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", flags, code, out, exitBadInput, want)
		}
	}
}
