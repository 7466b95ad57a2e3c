package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The checkpoint of a load knows one place from another.
func TestLoadCommand_Place(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range []loadCommand{
		{Target: "127.0.0.1:18088"},
		{Target: "127.0.0.1:18089"},
		{Target: "projects/p/instances/i"},
		{Target: "projects/p/instances/i", connectFlags: connectFlags{Endpoint: "127.0.0.1:18088"}},
		{Data: "store"},
		{Data: "other/store"},
	} {
		place := c.place()
		if seen[place] {
			t.Errorf("%q is of two targets", place)
		}
		seen[place] = true
	}
	if a, b := (&loadCommand{Data: "store"}).place(), (&loadCommand{Data: "./x/../store"}).place(); a != b {
		t.Errorf("one folder is %q and %q", a, b)
	}
}

// A load that the server ended says how it goes on; one with a bad input does not.
func TestLoadCommand_Interrupted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "point")
	gone := errors.New("the server is gone")
	for _, tc := range []struct {
		command loadCommand
		err     error
		want    string
	}{
		{loadCommand{}, gone, "the server is gone; the same command begins anew, and writes what is not there yet (with --checkpoint FILE"},
		{loadCommand{Checkpoint: file + ".none"}, gone, "had not come to its first checkpoint: the same command begins anew"},
		{loadCommand{Checkpoint: file}, gone, "the checkpoint " + file + " is kept: the same command goes on from there"},
		{loadCommand{Checkpoint: file}, badInput("damaged"), "damaged"},
		{loadCommand{Target: targetEmbedded}, gone, "the server is gone"},
	} {
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := tc.command.interrupted(tc.err)
		if !errors.Is(got, tc.err) || !strings.Contains(got.Error(), tc.want) || tc.want == tc.err.Error() && got.Error() != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
