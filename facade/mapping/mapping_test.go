package mapping_test

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// TestParse_Compile: Parse and Compile together give the mapping of Load, from the file and
// from its canonical form.
func TestParse_Compile(t *testing.T) {
	t.Parallel()
	loaded, err := mapping.Load("mapping.yaml", []byte(products))
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := loaded.Spec().YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{[]byte(products), canonical} {
		spec, err := mapping.Parse("mapping.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := mapping.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		if m.SourceTable() != "Products" || m.TargetTable() != "products" {
			t.Errorf("tables %q, %q; want Products, products", m.SourceTable(), m.TargetTable())
		}
		again, err := m.Spec().YAML()
		if err != nil || !bytes.Equal(again, canonical) {
			t.Errorf("canonical form %s, %v; want %s", again, err, canonical)
		}
	}
}

// TestParse_Refused: invalid files give an error and no result.
func TestParse_Refused(t *testing.T) {
	t.Parallel()
	spec, err := mapping.Parse("m.yaml", []byte("apiVersion: none"))
	if e, ok := errors.AsType[*maperr.SpecError](err); !ok || spec != nil || e.File != "m.yaml" || e.Line != 1 || e.Code != maperr.CodeSyntax {
		t.Errorf("Parse gives %v, %v; want a SpecError at m.yaml:1", spec, err)
	}
	if m, err := mapping.Load("m.yaml", nil); err == nil || m != nil {
		t.Errorf("Load of an empty file gives %v, %v; want an error", m, err)
	}
	if m, err := mapping.Default("t", "t", attr.KeySchema{}); err == nil || m != nil {
		t.Errorf("Default without a key gives %v, %v; want an error", m, err)
	}
}

// unreadable is a file system with unreadable files.
type unreadable struct{}

func (unreadable) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

// TestParse_Beside: the descriptor sets that a file names are looked up in beside; an
// unreadable one is an error.
func TestParse_Beside(t *testing.T) {
	t.Parallel()
	text := bytes.Replace([]byte(products), []byte(`"SKU:{attr}"`), []byte(`"SKU:{attr}", codec: "proto(sku.pb, Sku)"`), 1)
	if _, err := mapping.Parse("m.yaml", text, fstest.MapFS{}); err != nil {
		t.Errorf("a descriptor set that is missing: %v; want it told by Compile", err)
	}
	if _, err := mapping.Parse("m.yaml", text, unreadable{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a descriptor set that cannot be read: %v; want fs.ErrPermission", err)
	}
}

// TestDefault: items in the layout without a mapping file are read back from the row of
// Locate.
func TestDefault(t *testing.T) {
	t.Parallel()
	m, err := mapping.Default("items", "items", attr.KeySchema{Hash: attr.KeyAttr{Name: "pk", Type: attr.S}})
	if err != nil {
		t.Fatal(err)
	}
	item := attr.Item{"pk": attr.String("one"), "n": attr.Int(1)}
	placed, err := m.Place(item, 0)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := m.Locate(item); err != nil || !bytes.Equal(key, placed.Key) {
		t.Errorf("Locate gives %q, %v; want %q", key, err, placed.Key)
	}
	items, err := m.Items(placed.Row)
	if err != nil || len(items) != 1 || !attr.EqualItems(items[0], item) {
		t.Errorf("Items gives %v, %v; want %v", items, err, item)
	}
	if spec := m.Spec(); spec != nil {
		t.Errorf("Spec gives %v; want nil", spec)
	}
	if f := m.Families(); len(f) != 1 || f[0] != (mapping.Family{Name: "a", Versions: 1}) {
		t.Errorf("Families gives %v; want a of one version", f)
	}
}

// TestErrors: rejected items have an Error with its code.
func TestErrors(t *testing.T) {
	t.Parallel()
	m, err := mapping.Load("mapping.yaml", []byte(products))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		call func() error
		code maperr.Code
	}{
		"key":   {func() error { _, err := m.Locate(attr.Item{}); return err }, maperr.CodeKey},
		"place": {func() error { _, err := m.Place(attr.Item{}, 1); return err }, maperr.CodeLimit},
		"row": {func() error {
			_, err := m.Items(mapping.Row{Key: []byte("a#b"), Cells: []mapping.Cell{{Family: "SKU", Qualifier: []byte("Price"), Value: []byte("dear")}}})
			return err
		}, maperr.CodeCorrupt},
	} {
		if e, ok := errors.AsType[*maperr.Error](c.call()); !ok || e.Code != c.code {
			t.Errorf("%s: %v; want code %s", name, e, c.code)
		}
	}
}
