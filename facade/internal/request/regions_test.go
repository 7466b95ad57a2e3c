package request

import (
	"slices"
	"strings"
	"testing"
)

// Each row of regions.tsv has a layer for each column. "current" has the layers of most
// regions, and equals at least one region. "classic" has only the older layer.
func TestRegions(t *testing.T) {
	t.Parallel()
	var header []string
	var names []string
	newer := make([]int, 16) // by column
	for line := range strings.Lines(regionsTable) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case header == nil:
			header = cells
			continue
		case len(cells) != len(header):
			t.Errorf("%s has %d cells, the header %d", cells[0], len(cells), len(header))
		}
		for i, cell := range cells[1:] {
			layer := strings.TrimSuffix(cell, "?")
			if layer != "newer" && layer != "older" {
				t.Errorf("%s, %s: %q, want newer or older", cells[0], header[i+1], cell)
			}
			if layer == "newer" && cells[0] != Current {
				newer[i+1]++
			}
		}
		names = append(names, cells[0])
	}
	regions := names[2:]
	if names[0] != Current || names[1] != Classic || !slices.IsSorted(regions) || len(slices.Compact(slices.Clone(regions))) != 33 {
		t.Fatalf("rows are %v, want current, classic and 33 regions in order", names)
	}
	row := func(name string) Layers {
		l, err := LayersOf(name)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	same := func(a, b Layers) bool {
		for _, column := range header[1:] {
			for operation := range strings.FieldsSeq(column) {
				if a.Newer(operation) != b.Newer(operation) {
					return false
				}
			}
		}
		return true
	}
	for i, column := range header[1:] {
		for operation := range strings.FieldsSeq(column) {
			if most := newer[i+1] > len(regions)/2; row(Current).Newer(operation) != most || row("").Newer(operation) != most {
				t.Errorf("current: %s is newer: %v, but so it is in %d regions", operation, !most, newer[i+1])
			}
			if row(Classic).Newer(operation) {
				t.Errorf("classic: %s is newer", operation)
			}
		}
	}
	for _, profile := range []string{Current, Classic} {
		if !slices.ContainsFunc(regions, func(name string) bool { return same(row(profile), row(name)) }) {
			t.Errorf("no region is as %s", profile)
		}
	}
}

// The table has the recorded layers of some regions, and those of the profiles.
func TestRegions_Recorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operation string
		newer     []string
		older     []string
	}{
		{"PutItem", []string{"eu-west-2", "us-east-1", "sa-east-1"}, []string{"eu-south-2", "me-central-1"}},
		{"DeleteItem", []string{"eu-west-2", "us-east-1", "eu-west-1", "us-west-2"}, []string{"classic"}},
		{"Scan", []string{"current", "eu-west-2", "eu-central-1", "ap-southeast-2"}, []string{"us-east-1", "us-west-2", "eu-north-1"}},
		{"BatchGetItem", []string{"current", "eu-south-2"}, []string{"me-central-1"}},
		{"BatchWriteItem", []string{"eu-west-2", "eu-north-1"}, []string{"current", "us-east-1", "ap-northeast-2"}},
		{"TransactWriteItems", []string{"eu-west-2", "eu-north-1", "ap-northeast-2"}, []string{"current", "us-east-1"}},
		{"ExecuteStatement", nil, []string{"current", "eu-west-2", "us-east-1"}},
		{"UpdateTable", []string{"current", "eu-west-2"}, []string{"classic"}}, // among the others
	} {
		for i, names := range [][]string{c.newer, c.older} {
			for _, name := range names {
				if l, err := LayersOf(name); err != nil || l.Newer(c.operation) != (i == 0) {
					t.Errorf("%s in %s: newer %v, %v", c.operation, name, l.Newer(c.operation), err)
				}
			}
		}
	}
}

func TestLayersOf_Unknown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"old", "EU-WEST-2", "me-south-1", " "} {
		_, err := LayersOf(name)
		if err == nil || !strings.HasPrefix(err.Error(), `"`+name+`" is unknown, want current, classic, af-south-1, `) ||
			!strings.HasSuffix(err.Error(), ", us-west-1 or us-west-2") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
