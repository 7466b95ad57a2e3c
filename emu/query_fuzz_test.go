package emu_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// FuzzQuery runs statements of any text: each has the rows of a naive evaluation, or an error of the statement.
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
	s := newSQL(f)
	params := map[string]*btpb.Value{"k": paramOf("BYTES", "u#001"), "n": paramOf("INT64", "2"), "s": paramOf("STRING", "x")}
	volatile := regexp.MustCompile("(?i)RAND|UUID|CURRENT_|FORMAT|CLUSTER_ATTRIBUTE|APPROX_")
	f.Fuzz(func(t *testing.T, query string) {
		if !utf8.ValidString(query) {
			return // gRPC refuses such a request; FuzzParse reads such a text
		}
		if volatile.MatchString(query) {
			_, _, err := runQuery(t.Context(), s.conn, query, params)
			checkStatement(t, query, err)
			return
		}
		s.compare(t, query, params)
	})
}

// checkStatement checks that an error is one of a statement.
func checkStatement(t *testing.T, query string, err error) {
	t.Helper()
	switch status.Code(err) { //nolint:exhaustive // the others are faults
	case codes.OK, codes.InvalidArgument, codes.OutOfRange, codes.Unimplemented, codes.ResourceExhausted:
	default:
		t.Errorf("%s: %v", query, err)
	}
}

// FuzzQuery_Random runs the statements of the generator. The input decides its choices.
func FuzzQuery_Random(f *testing.F) {
	for i := range 20 {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		choices := make([]byte, 200)
		for j := range choices {
			choices[j] = byte(rng.IntN(256))
		}
		f.Add(choices)
	}
	s := newRandomTables(f, rand.New(rand.NewPCG(1, 7)))
	f.Fuzz(func(t *testing.T, choices []byte) {
		q := &queryGenerator{draw: func(n int) int {
			if len(choices) == 0 {
				return n - 1 // which ends each loop
			}
			c := int(choices[0])
			choices = choices[1:]
			return c % n
		}}
		text := q.statement()
		s.compare(t, text, q.parameters())
	})
}
