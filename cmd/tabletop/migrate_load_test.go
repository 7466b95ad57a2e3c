package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/migrate"
)

// The checkpoint of a load distinguishes targets.
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

// The error of a load that the server interrupted has advice to continue; that of a bad input
// does not.
func TestLoadCommand_Interrupted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "point")
	gone := errors.New("the server is gone")
	for _, tc := range []struct {
		command loadCommand
		err     error
		want    string
	}{
		{loadCommand{}, gone, "the server is gone; run the same command again to write the missing rows (with --checkpoint FILE"},
		{loadCommand{Checkpoint: file + ".none"}, gone, "had not reached its first checkpoint: run the same command to start again"},
		{loadCommand{Checkpoint: file}, gone, "the checkpoint " + file + " is kept: run the same command to continue from there"},
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

// After about two seconds without success, each call is reported once, with the reason and the
// end of the retries.
func TestWaiting(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 5, 1, 14, 3, 0, 0, time.UTC)
	var logged []string
	spent, all := time.Duration(0), 25500*time.Millisecond
	for next := 100 * time.Millisecond; spent < all; spent, next = spent+next, 2*next {
		if text := waiting("target 127.0.0.1:18088", "load", migrate.Wait{Err: errors.New("connection refused"), Spent: spent, Next: next, Left: all - spent}, now.Add(spent)); text != "" {
			logged = append(logged, text)
		}
	}
	const want = "target 127.0.0.1:18088 fails (connection refused): retrying for 24s more, until 14:03:25; Ctrl-C stops the load"
	if len(logged) != 1 || logged[0] != want {
		t.Errorf("it says %q, want %q", logged, want)
	}
	late := fmt.Errorf("writing to table t: %w", &btclient.DeadlineError{Server: "h:1", Call: "MutateRows", After: 10 * time.Second})
	const asked = "target 127.0.0.1:18088 does not respond (writing to table t: no answer from h:1 to MutateRows for 10s): retrying; Ctrl-C stops the load"
	if text := waiting("target 127.0.0.1:18088", "load", migrate.Wait{Err: late, Next: 100 * time.Millisecond, Left: all}, now); text != asked {
		t.Errorf("of a call that has taken its time it says %q, want %q", text, asked)
	}
}
