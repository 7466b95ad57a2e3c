package main

import (
	"testing"

	"github.com/alecthomas/kong"
)

// TestCommandOf: a command line is read with the grammar of its command alone, which is the same
// as among all commands.
func TestCommandOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--data", "x"}, "serve"},
		{[]string{"migrate", "load", "x"}, "migrate load"},
		{[]string{"migrate"}, ""},
		{[]string{"migrate", "verfy"}, ""},
		{[]string{"--help"}, ""},
		{nil, ""},
		{[]string{"serve", "--config", "x"}, ""},
		{[]string{"--config=x", "serve"}, ""},
	} {
		if got := commandOf(tc.args); got != tc.want {
			t.Errorf("%q are read with the grammar of %q, want %q", tc.args, got, tc.want)
		}
	}
	all, err := newParser("")
	if err != nil {
		t.Fatal(err)
	}
	leaves := all.Model.Leaves(false)
	if len(leaves) != len(commands) {
		t.Fatalf("the grammar has %d commands, want %d", len(leaves), len(commands))
	}
	for i, c := range commands {
		alone, err := newParser(c.name)
		if err != nil {
			t.Fatal(err)
		}
		one := alone.Model.Leaves(false)
		if len(one) != 1 || one[0].Path() != c.name || leaves[i].Path() != c.name {
			t.Fatalf("the grammar of %q has the commands %v", c.name, one)
		}
		if got, want := flagsOf(one[0]), flagsOf(leaves[i]); got != want {
			t.Errorf("the flags of %s alone are\n%s\nwant\n%s", c.name, got, want)
		}
	}
}

func flagsOf(n *kong.Node) (all string) {
	for _, group := range n.AllFlags(false) {
		for _, f := range group {
			all += f.String() + "\n"
		}
	}
	return all
}
