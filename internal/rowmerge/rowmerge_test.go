package rowmerge_test

import (
	"fmt"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tabletop-emu/tabletop/internal/rowmerge"
)

// chunk reads a chunk: "row=k family=f column=q ts=1 value=v size=3 label=l",
// "commit" and "reset".
func chunk(t *testing.T, text string) *btpb.ReadRowsResponse_CellChunk {
	t.Helper()
	c := &btpb.ReadRowsResponse_CellChunk{}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "row":
			c.RowKey = []byte(value)
		case "family":
			c.FamilyName = wrapperspb.String(value)
		case "column":
			c.Qualifier = wrapperspb.Bytes([]byte(value))
		case "value":
			c.Value = []byte(value)
		case "label":
			c.Labels = append(c.Labels, value)
		case "ts":
			_, err = fmt.Sscan(value, &c.TimestampMicros)
		case "size":
			_, err = fmt.Sscan(value, &c.ValueSize)
		case "commit":
			c.RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
		case "reset":
			c.RowStatus = &btpb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: true}
		default:
			t.Fatalf("unknown word %q", word)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// merged returns the text of the merged responses: one row per line, and the final error. ";"
// separates chunks, "|" responses.
func merged(t *testing.T, m *rowmerge.Merger[string], responses string) string {
	t.Helper()
	var got strings.Builder
	for text := range strings.SplitSeq(responses, "|") {
		resp := &btpb.ReadRowsResponse{}
		if key, ok := strings.CutPrefix(strings.TrimSpace(text), "scanned="); ok {
			resp.LastScannedRowKey = []byte(key)
		} else {
			for c := range strings.SplitSeq(text, ";") {
				resp.Chunks = append(resp.GetChunks(), chunk(t, c))
			}
		}
		for row, err := range m.Merge(resp) {
			if err != nil {
				fmt.Fprintf(&got, "error: %v", err)
				return got.String()
			}
			fmt.Fprintf(&got, "%s %s\n", row.Key, strings.Join(row.Cells, " "))
		}
	}
	if err := m.End(); err != nil {
		fmt.Fprintf(&got, "error: %v", err)
	}
	return got.String()
}

func cellText(c rowmerge.Cell) string {
	return strings.TrimSpace(fmt.Sprintf("%s:%s@%d=%s", c.Family, c.Qualifier, c.TimestampMicros, c.Value) + strings.Join(append([]string{""}, c.Labels...), "#"))
}

func TestMerge(t *testing.T) {
	t.Parallel()
	const a = "row=r family=f column=a "
	for _, c := range []struct {
		name, responses, want string
	}{
		{
			"columns and versions", a + "ts=2000 value=x label=l; ts=1000 value=y; column=b ts=1000 value=z; family=g column=a value=w commit",
			"r f:a@2000=x#l f:a@1000=y f:b@1000=z g:a@0=w\n",
		},
		{"a value in pieces", a + "ts=1000 value=ab size=5; value=cd size=5; value=e; column=b value=z commit", "r f:a@1000=abcde f:b@0=z\n"},
		{"over messages", a + "value=ab size=5 | value=c size=5 | value=de | column=b value=z commit", "r f:a@0=abcde f:b@0=z\n"},
		{"labels of pieces", a + "value=a size=2 label=l; value=b commit", "r f:a@0=ab#l\n"},
		{"two rows", a + "value=x commit; row=s family=f column=a value=y commit", "r f:a@0=x\ns f:a@0=y\n"},
		{"reset", a + "value=x; column=b value=ab size=4; reset; " + a + "value=y commit", "r f:a@0=y\n"},
		{"reset to another row", a + "value=x; reset; row=q family=f column=a commit", "q f:a@0=\n"},
		{"key named again", a + "value=x; row=r column=b value=y commit", "r f:a@0=x f:b@0=y\n"},
		{"empty qualifier", "row=r family=f column= value=x commit", "r f:@0=x\n"},
		{"empty cell", a + "commit", "r f:a@0=\n"},
		{"scanned", a + "commit | scanned=s | row=t family=f column=a commit", "r f:a@0=\nt f:a@0=\n"},

		{"no row key", "family=f column=a value=x commit", "error: a row begins without a key"},
		{"no column", "row=r family=f value=x commit", `error: row "r" begins without a column`},
		{"no family", "row=r column=a value=x commit", `error: row "r" begins without a column`},
		{"no qualifier", a + "; family=g commit", `error: row "r": family "g" begins without a qualifier`},
		{"row in row", a + "value=x; row=s family=f column=a value=y commit", `error: row "s" begins inside row "r"`},
		{"commit in value", a + "value=x size=4 commit", `error: row "r" is committed inside a value`},
		{"commit in a later piece", a + "value=x size=4; value=y size=4 commit", `error: row "r" is committed inside a value`},
		{"cell in value", a + "value=x size=4; ts=1 value=y", `error: row "r": a cell begins inside a value`},
		{"label in value", a + "value=x size=2; label=l value=y", `error: row "r": a cell begins inside a value`},
		{"short value", a + "value=x size=4; value=y commit", `error: row "r": a value of 4 bytes has 2 or more`},
		{"long value", a + "value=x size=4; value=yyyy size=4", `error: row "r": a value of 4 bytes has 5 or more`},
		{"two sizes", a + "value=x size=4; value=y size=5", `error: row "r": a value of 4 bytes is announced again with 5 bytes`},
		{"negative size", a + "value=x size=-1", `error: row "r": a value has the announced size -1`},
		{"reset of nothing", "reset", "error: a row is reset before it begins"},
		{"reset with data", a + "value=x; value=y reset", `error: row "r" is reset by a chunk that holds data`},
		{"the same row", a + "commit; " + a + "commit", "r f:a@0=\n" + `error: row "r" comes after row "r"`},
		{"an earlier row", a + "commit; row=q family=f column=a commit", "r f:a@0=\n" + `error: row "q" comes after row "r"`},
		{"a row before what was scanned", "scanned=s | " + a + "commit", `error: row "r" comes after row "s"`},
		{"scanned inside a row", a + "| scanned=s", `error: row "s" is reported as scanned inside row "r"`},
		{"no commit", a + "value=x", `error: the stream ended inside row "r"`},
		{"no end of a value", a + "value=x size=2", `error: the stream ended inside row "r"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := merged(t, rowmerge.New(false, cellText), c.responses); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestMerge_Cut cuts the incomplete row after each response, and reports the number of cells
// cut before.
func TestMerge_Cut(t *testing.T) {
	t.Parallel()
	m := rowmerge.New(false, cellText)
	var got strings.Builder
	for _, text := range []string{
		"row=r family=f column=a value=x", "column=b value=y; column=c value=ab size=3", "value=c", // in the middle of a value
		"reset", "row=r family=f column=a value=z", "column=b value=y commit", "row=s family=f column=a value=x commit",
	} {
		resp := &btpb.ReadRowsResponse{}
		for c := range strings.SplitSeq(text, ";") {
			resp.Chunks = append(resp.GetChunks(), chunk(t, c))
		}
		for row, err := range m.Merge(resp) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "%s behind %d: %s\n", row.Key, m.Taken(), strings.Join(row.Cells, " "))
		}
		taken := m.Taken()
		if part := m.Cut(); len(part.Cells) > 0 {
			fmt.Fprintf(&got, "part of %s behind %d: %s\n", part.Key, taken, strings.Join(part.Cells, " "))
		}
	}
	const want = `part of r behind 0: f:a@0=x
part of r behind 1: f:b@0=y
part of r behind 2: f:c@0=abc
part of r behind 0: f:a@0=z
r behind 1: f:b@0=y
s behind 0: f:a@0=x
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
}

func TestMerge_Reversed(t *testing.T) {
	t.Parallel()
	const down = "row=r family=f column=a commit; row=q family=f column=a commit | scanned=p"
	if got, want := merged(t, rowmerge.New(true, cellText), down), "r f:a@0=\nq f:a@0=\n"; got != want {
		t.Errorf("got %s", got)
	}
	if got := merged(t, rowmerge.New(true, cellText), down+" | row=q family=f column=a commit"); !strings.HasSuffix(got, `error: row "q" comes after row "p"`) {
		t.Errorf("got %s", got)
	}
}

// TestMerge_Shares checks that a retained row does not change with later ones.
func TestMerge_Shares(t *testing.T) {
	t.Parallel()
	m := rowmerge.New(false, func(c rowmerge.Cell) rowmerge.Cell { return c })
	var kept []rowmerge.Row[rowmerge.Cell]
	for _, text := range []string{"row=a family=f column=x value=12 size=4;value=34;column=y value=5 commit", "row=b family=g column=z value=67 size=4;value=89 commit"} {
		resp := &btpb.ReadRowsResponse{}
		for c := range strings.SplitSeq(text, ";") {
			resp.Chunks = append(resp.GetChunks(), chunk(t, c))
		}
		for row, err := range m.Merge(resp) {
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, row)
		}
	}
	var got []string
	for _, row := range kept {
		for _, c := range row.Cells {
			got = append(got, string(row.Key)+" "+cellText(c))
		}
	}
	if got, want := strings.Join(got, ", "), "a f:x@0=1234, a f:y@0=5, b g:z@0=6789"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
