package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestServe_CPUProfile: the complete profile, and nothing else, appears at the end.
func TestServe_CPUProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "cpu.prof")
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--cpu-profile", file)
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a profile while the server runs")
	}
	if code := s.end(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.stderr)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if profile, err := io.ReadAll(r); err != nil || len(profile) == 0 {
		t.Errorf("the profile has %d bytes, %v", len(profile), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v; the profile alone is expected", left, err)
	}
}
