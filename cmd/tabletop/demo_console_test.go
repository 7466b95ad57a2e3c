package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/fixtures"
)

// TestDemo_Console: all fixtures are available on both endpoints, in the control API and as
// folders, until Ctrl-C.
func TestDemo_Console(t *testing.T) {
	t.Parallel()
	portFile := filepath.Join(t.TempDir(), "ports.json")
	s := started(t, "demo", "--console", "--port-file", portFile)
	if s.env["TABLETOP_CONSOLE_URL"] == "" || s.env["BIGTABLE_EMULATOR_HOST"] == "" || s.env["AWS_ENDPOINT_URL_DYNAMODB"] == "" {
		t.Fatalf("it prints %v", s.env)
	}
	if info, err := os.Stat(portFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", portFile, info, err)
	}
	var seen struct {
		Requests []struct{ Operation, Status, Test, Cause string }
	}
	if err := json.Unmarshal([]byte(ctl(t, s, exitEqual, "requests", "limit=1000")), &seen); err != nil || len(seen.Requests) == 0 {
		t.Errorf("the demo made %d requests: %v", len(seen.Requests), err)
	}
	for _, r := range seen.Requests {
		if r.Cause == "" && (r.Status != "OK" || r.Test != "demo") {
			t.Errorf("a request before the first is %+v", r)
		}
	}
	subjects, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	var tables struct {
		DynamoDB []string
		Bigtable []struct {
			Table    string
			DynamoDB []string
		}
	}
	if err := json.Unmarshal([]byte(ctl(t, s, exitEqual, "tables")), &tables); err != nil {
		t.Fatal(err)
	}
	if len(tables.DynamoDB) != len(subjects) {
		t.Errorf("there are %d tables of DynamoDB, want one of each fixture: %q", len(tables.DynamoDB), tables.DynamoDB)
	}
	over := map[string]string{}
	for _, b := range tables.Bigtable {
		for _, name := range b.DynamoDB {
			over[name] = b.Table
		}
	}
	for _, subject := range subjects {
		f, err := fixtures.Open(subject.Files)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := over[f.Mapping.SourceTable()], f.Mapping.TargetTable(); got != want {
			t.Errorf("%s: the items of %s are in %q, want %s", subject.Name, f.Mapping.SourceTable(), got, want)
		}
	}
	for table, text := range map[string]string{"Videos": "VideoStatsViews", "VideosOneFamily": "VideoStatsViews", "orders": `"S": "OE-WAREHOUSE1"`} {
		if out := ctl(t, s, exitEqual, "items", table); !strings.Contains(out, text) {
			t.Errorf("the items of %s are %s", table, out)
		}
	}
	if out := ctl(t, s, exitEqual, "lint", "s2-video"); !strings.Contains(out, `"fixture": "s2-video"`) {
		t.Error(out)
	}
	if code := s.end(t, os.Interrupt); code != exitEqual {
		t.Errorf("Ctrl-C ends it with %d: %s", code, s.stderr)
	}
	if _, err := os.Stat(portFile); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", portFile, err)
	}
}
