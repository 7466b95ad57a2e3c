package emu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// FuzzQuery runs statements of any text: each has rows, or an error of the statement.
func FuzzQuery(f *testing.F) {
	files, err := filepath.Glob("internal/sql/testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range strings.Split(string(text), "\n\n") {
			if _, query, ok := strings.Cut(c, "\n"); ok {
				query, _, _ = strings.Cut(query, "\n----")
				f.Add(query)
			}
		}
	}
	f.Add("SELECT (((((((((1+_key[0] FROM g")
	f.Add("FROM g |> AGGREGATE SUM(total['n']) GROUP AND ORDER BY _key |> RENAME _key AS k |> SET k = 1 |> DROP k")
	s := newSQL(f, nil)
	params := map[string]*btpb.Value{"k": paramOf("BYTES", "u#001"), "n": paramOf("INT64", "2"), "s": paramOf("STRING", "x")}
	f.Fuzz(func(t *testing.T, query string) {
		_, _, err := runQuery(t.Context(), s.conn, query, params)
		switch status.Code(err) { //nolint:exhaustive // the others are faults
		case codes.OK, codes.InvalidArgument, codes.OutOfRange, codes.Unimplemented, codes.ResourceExhausted:
		default:
			t.Errorf("%s: %v", query, err)
		}
	})
}
