package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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

// TestMigrate_Parts loads and verifies an export in processes of their own, at once, as a
// person would.
func TestMigrate_Parts(t *testing.T) {
	t.Parallel()
	export, mapping := exportInFiles(t, 300, 7)
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	folder := t.TempDir()
	target := s.env["BIGTABLE_EMULATOR_HOST"]
	const parts = 3
	for _, verb := range [][]string{{"load", "--target", target}, {"verify", "--against", target}} {
		command := func(more ...string) (string, int) {
			return tabletop(t, slices.Concat([]string{"migrate"}, verb, []string{"--source", export, "--mapping", mapping, "--checkpoint", folder}, more)...)
		}
		if out, code := command("--finish"); code != exitBadInput || !strings.Contains(out, "the folder has no part of a "+verb[0]) {
			t.Errorf("%s --finish without parts: exit %d: %s", verb[0], code, out)
		}
		var working sync.WaitGroup
		for i := range parts {
			working.Go(func() {
				part := fmt.Sprintf("%d/%d", i+1, parts)
				if out, code := command("--part", part); code != exitEqual || !strings.Contains(out, "part "+part+" is complete") {
					t.Errorf("%s --part %s: exit %d: %s", verb[0], part, code, out)
				}
			})
		}
		working.Wait()
		if out, code := command("--finish"); code != exitEqual || !strings.Contains(out, "300 items, 300 rows") {
			t.Errorf("%s --finish: exit %d: %s", verb[0], code, out)
		}
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
		{[]string{"--tablets", "5000"}, "--tablets is 5000, want 1 to 1000"},
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
