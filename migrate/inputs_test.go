package migrate

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/s3export"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

func TestVerify_FamilyBudget(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"id":{"S":"1"}`)
	for i := range 95 {
		fmt.Fprintf(&b, `,"set%03d":{"NS":["1","2"]}`, i)
	}
	b.WriteString("}")
	src, err := source.OpenFS(fstest.MapFS{"in": {Data: []byte(b.String())}}, "in", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if len(r.Tables[0].Choices) == 0 || r.Exceptions != 0 || !strings.Contains(r.Text(), "5 more are JSON in one cell") {
		t.Errorf("report:\n%s", r.Text())
	}
}

// inputPath returns a path below testdata/inputs, which its README describes.
func inputPath(name string) string {
	return filepath.Join("testdata", "inputs", filepath.FromSlash(name))
}

// inputsDir is the folder of the inputs of TestVerify_InferredOfInputs.
var inputsDir = flag.String("inputs", inputPath(""), "infer and verify the inputs in this `DIR` instead, exports of your own")

// inputsIn returns the paths of inputs below dir.
func inputsIn(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == s3export.Folder:
			found = append(found, path.Dir(name))
			return fs.SkipDir
		case d.IsDir(), d.Name() == "README.md", slices.Contains(found, path.Dir(name)): // change records beside an export
			return nil
		}
		found = append(found, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Errorf("there are no inputs in %s", dir)
	}
	return found
}

// The mapping inferred for each input has no losses to accept, gives its reasons, and is a file
// with which the input round-trips.
func TestVerify_InferredOfInputs(t *testing.T) {
	t.Parallel()
	for _, name := range inputsIn(t, *inputsDir) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, err := source.Open(filepath.Join(*inputsDir, filepath.FromSlash(name)), source.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var o Common
			for _, table := range src.Tables {
				in, err := infer.Table(t.Context(), table, infer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range in.Mapping.Fidelity() {
					if f.Class == mapping.Lossy {
						t.Errorf("table %s: %s", table.Name, f)
					}
				}
				if len((*layout.Mapping)(in.Mapping).Spec().AcceptLoss) > 0 {
					t.Errorf("table %s: the mapping accepts %v", table.Name, (*layout.Mapping)(in.Mapping).Spec().AcceptLoss)
				}
				for _, c := range in.Choices {
					if c.What == "" || c.Chosen == "" || c.Why == "" {
						t.Errorf("table %s: a choice without a reason: %+v", table.Name, c)
					}
				}
				text, err := in.Mapping.Spec().YAML()
				if err != nil {
					t.Fatal(err)
				}
				m, err := mapping.Load("inferred.yaml", text)
				if err != nil {
					t.Fatal(err)
				}
				o.Mappings = append(o.Mappings, m)
			}
			r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
		})
	}
}
