package expr

import (
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// The sizes were found by bisecting the limit on the service, with names and values of one byte.
func TestUpdate_Size(t *testing.T) {
	t.Parallel()
	values := map[string]attr.Value{
		":v": attr.String("x"), ":w": attr.String("y"), ":d": attr.SetOf(attr.SS, "z"), ":one": {Type: attr.N, Str: "1"},
		":l": attr.ListOf(),
	}
	for _, c := range []struct {
		update string
		want   int // without the written names and values
		wrote  int
	}{
		{"SET b = :v", 22, 2},
		{"SET b = :v, c = :w", 41, 4},
		{"SET b = :v REMOVE r", 24, 2},
		{"SET b = :v DELETE t :d", 24, 2},
		{"SET b = :v ADD n :one", 41, 2 + 1 + 2},
		{"SET b = :v, m.f = :w", 41, 2 + 1 + (4 + 1) + 1},
		{"SET b = :v, l[0] = :w", 42, 2 + 1 + 4 + 1},
		{"SET b = :v, l[10] = :w", 43, 2 + 1 + 4 + 1},
		{"SET b = :v, n = n + :one", 91, 2 + 1 + 2},
		{"SET b = :v, n = n - :one", 94, 2 + 1 + 2},
		{"SET n = if_not_exists(n, :one)", 22 + 39 + 16, 1 + 2},
		{"SET l = list_append(l, :l)", 22 + 37 + 16, 1 + 3},
		{"SET b = m.f", 22 + 1 + 15 + 15, 1},
		{"REMOVE r", 5, 0},
		{"REMOVE r, s", 7, 0},
		{"REMOVE m.f", 5 + 5, 0},
	} {
		p, err := NewPlaceholders(nil, values)
		if err != nil {
			t.Fatal(err)
		}
		u, err := ParseUpdate(c.update, p)
		if err != nil {
			t.Fatalf("%s: %v", c.update, err)
		}
		if got := u.Size(); got != c.want+c.wrote {
			t.Errorf("%s counts %d bytes, want %d and the %d that it writes", c.update, got, c.want, c.wrote)
		}
	}
}
