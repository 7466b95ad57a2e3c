package facade

import (
	"encoding/csv"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// message is a row of testdata/messages.tsv.
type message struct {
	texts    []*regexp.Regexp // one for each text
	believed bool             // whether it has a single source, which is not AWS
	noCase   string           // why no case shows it; "" if a case does
}

// readMessages reads testdata/messages.tsv; keys are the numbers of the rows.
func readMessages(t *testing.T) map[string]message {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "messages.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comma, r.Comment, r.LazyQuotes = '\t', '#', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"row", "condition", "text", "seen", "standing", "no case"}; !slices.Equal(rows[0], want) {
		t.Fatalf("the columns of messages.tsv are %q, want %q", rows[0], want)
	}
	varies := regexp.MustCompile(`‹[^›]*›`)
	messages := map[string]message{}
	for _, row := range rows[1:] {
		number, condition, seen, standing := row[0], row[1], row[3], row[4]
		m := message{believed: standing == "believed", noCase: row[5]}
		for text := range strings.SplitSeq(row[2], " | ") {
			quoted := varies.Split(text, -1)
			for i := range quoted {
				quoted[i] = regexp.QuoteMeta(quoted[i])
			}
			m.texts = append(m.texts, regexp.MustCompile(strings.Join(quoted, ".+")))
		}
		if m.believed != (seen == "X" || seen == "P" || seen == "U") || !m.believed && standing != "confirmed" {
			t.Errorf("messages.tsv: row %s was seen in %q and is %q", number, seen, standing)
		}
		if _, twice := messages[number]; twice || condition == "" || row[2] == "" {
			t.Errorf("messages.tsv: row %s is there twice, or lacks its condition or text", number)
		}
		messages[number] = m
	}
	return messages
}

// Every row of testdata/messages.tsv has a case with its number, in the wordings of both
// profiles if they differ, and the cases show each of its texts. Texts that are only believed
// are marked wherever they appear.
func TestMessages(t *testing.T) {
	t.Parallel()
	messages := readMessages(t)
	both, shown := map[string]bool{}, map[*regexp.Regexp]bool{}
	var faults []string // reported after all files, because package datadriven stops at the first
	see := func(path string, d *datadriven.TestData) {
		fault := func(format string, args ...any) {
			line := strings.TrimPrefix(d.Pos, "<string>")
			faults = append(faults, path+line+": "+fmt.Sprintf(format, args...))
		}
		rows, ok := d.Arg("row")
		if !ok {
			return
		}
		for _, number := range rows.Vals {
			m, ok := messages[number]
			switch {
			case !ok:
				fault("messages.tsv has no row %s", number)
			case m.noCase != "":
				fault("a case of row %s, which messages.tsv says has none: %s", number, m.noCase)
			case m.believed && !d.HasArg("unconfirmed"):
				fault("row %s is only believed, and the case not marked as unconfirmed", number)
			}
			if profile, ok := d.Arg("profile"); ok && profile.FirstVal(t) == "both" {
				both[number] = true
			}
			for _, text := range m.texts {
				shown[text] = shown[text] || text.MatchString(d.Expected)
			}
		}
	}
	eachFile(t, filepath.Join("testdata", "operations"), func(path, text string) {
		datadriven.RunTestFromString(t, text, func(_ *testing.T, d *datadriven.TestData) string {
			see(path, d)
			return d.Expected
		})
	})
	// Cases of the HTTP frame are lines of Go with the number after them.
	mark := regexp.MustCompile(`// row ([0-9]+b?)(, unconfirmed)?$`)
	line := func(path, text string) {
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			row := mark.FindStringSubmatch(line)
			if row == nil {
				continue
			}
			m, ok := messages[row[1]]
			switch {
			case !ok:
				faults = append(faults, path+": messages.tsv has no row "+row[1])
			case m.noCase != "":
				faults = append(faults, path+": a case of row "+row[1]+", which messages.tsv says has none")
			case m.believed && row[2] == "":
				faults = append(faults, path+": row "+row[1]+" is only believed, and the case not marked as unconfirmed")
			}
			both[row[1]] = true // the frame has only one wording
			for _, text := range m.texts {
				shown[text] = shown[text] || text.MatchString(line)
			}
		}
	}
	eachFile(t, "server_test.go", line)
	eachFile(t, filepath.Join("internal", "wire", "signature_test.go"), line)
	for _, fault := range faults {
		t.Error(fault)
	}
	for number, m := range messages {
		if m.noCase != "" {
			continue
		}
		if !both[number] {
			t.Errorf("row %s has no case with row=%s profile=both", number, number)
		}
		for _, text := range m.texts {
			if !shown[text] {
				t.Errorf("no case of row %s shows a text like %s", number, text)
			}
		}
	}
}

// Each text of package awserr is followed by a comment with its rows of testdata/messages.tsv,
// with the rows that it is a part of, or that it is our own. The cases of package expr name
// existing rows.
func TestMessages_NumbersExist(t *testing.T) {
	t.Parallel()
	messages := readMessages(t)
	source := regexp.MustCompile(`^(?:nolint:\S+ // )?(?:our own text|(?:part of )?rows? ([0-9]+b?(?:-[0-9]+)?(?:, [0-9]+b?(?:-[0-9]+)?)*)(?:, (?:sic|current|classic))?)$`)
	number := regexp.MustCompile(`([0-9]+)(b?)(?:-([0-9]+))?`)
	paths, err := filepath.Glob(filepath.Join("awserr", "texts_*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files of texts, %v", len(paths), err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		texts := 0
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			texts++
			name, comment := text.Names[0].Name, ""
			if text.Comment != nil {
				comment = strings.TrimSpace(strings.TrimPrefix(text.Comment.List[0].Text, "//"))
			}
			rows := source.FindStringSubmatch(comment)
			if rows == nil {
				t.Errorf("%s: the comment after %s is %q, want \"row\" and a number, \"part of row\" and a number, or \"our own text\"", path, name, comment)
				return true
			}
			for _, n := range number.FindAllStringSubmatch(rows[1], -1) {
				first, _ := strconv.Atoi(n[1])
				last, _ := strconv.Atoi(n[3])
				for i := first; i <= max(first, last); i++ {
					if row := strconv.Itoa(i) + n[2]; messages[row].texts == nil {
						t.Errorf("%s: %s names row %s, which messages.tsv does not have", path, name, row)
					}
				}
			}
			return true
		})
		if texts == 0 {
			t.Errorf("%s has no text", path)
		}
	}
	row := regexp.MustCompile(`\brow-([0-9]+b?)\b`)
	eachFile(t, filepath.Join("expr", "testdata"), func(path, text string) {
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			if messages[m[1]].texts == nil {
				t.Errorf("%s names row %s, which messages.tsv does not have", path, m[1])
			}
		}
	})
}

// eachFile calls f with every file below dir.
func eachFile(t *testing.T, dir string, f func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		f(path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
