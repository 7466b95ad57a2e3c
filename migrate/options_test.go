package migrate

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

func TestOpen_Contradictions(t *testing.T) {
	t.Parallel()
	const schema = `{"TableName":"Music","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}]}`
	files := fstest.MapFS{
		"in":    {Data: []byte(`{"pk":{"S":"a"},"sk":{"N":"1"}}`)},
		"batch": {Data: []byte(`{"Films":[{"PutRequest":{"Item":{"pk":{"S":"a"},"sk":{"N":"1"}}}}]}`)},
	}
	for _, c := range []struct {
		name, file, key, table, want string
		schema                       bool
	}{
		{"agree", "in", "pk,sk", "Music", "", true},
		{"key against schema", "in", "pk", "", "in: the given key is pk, but the key declared by schema.json is pk (S), sk (N)", true},
		{"table against schema", "in", "", "Films", "schema.json: the schema is for table Music, but the source in has Films", true},
		{"input against schema", "batch", "", "", "schema.json: the schema is for table Music, but the source batch has Films", true},
		{"no name for a table", "in", "pk", "bad name!", `in: "bad name!" is not a valid table name: want 3 to 255 letters, digits and _.-`, false},
		{"no such table", "batch", "pk", "Music", "batch: the source has no table Music, only Films", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := source.Options{Key: c.key, Table: c.table}
			if c.schema {
				o.TableSchema, o.TableSchemaFile = []byte(schema), "schema.json"
			}
			_, err := source.OpenFS(files, c.file, o)
			if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func TestPrepare_MappingOfAnother(t *testing.T) {
	t.Parallel()
	_, o := subject(t, "s2-video")
	files := fstest.MapFS{"in": {Data: []byte(`{"PK":{"S":"0123"},"SK":{"S":"Video"}}`)}}
	for _, c := range []struct {
		o    source.Options
		want string
	}{
		{source.Options{Key: "PK"}, "in: the key of table in_ is PK (given by the caller), but its mapping declares PK (S), SK (S)"},
		{source.Options{Table: "Films"}, "in: table Films was selected, but the mapping is for table Videos"},
	} {
		src, err := source.OpenFS(files, "in", c.o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Prepare(t.Context(), src, LoadOptions{Common: o})
		WantDamage(t, err, source.MappingRefused, c.want)
	}
}

func TestVerify_NoItems(t *testing.T) {
	t.Parallel()
	src, err := source.OpenFS(exporttest.New(nil), "bucket", source.Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{})
	WantDamage(t, err, source.SourceEmpty, "nothing would be verified")
	if _, err := Load(t.Context(), newBigtableServer(t), src, LoadOptions{}); err != nil {
		t.Errorf("an empty table cannot be loaded: %v", err)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{AllowEmpty: true})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if text := r.Text(); r.Items != 0 || !strings.Contains(text, "no items were read, so samples are missing\n") || !strings.Contains(text, "no item shows its type: S is assumed") {
		t.Errorf("text:\n%s", text)
	}
}

func TestReport_ExplainsExceptions(t *testing.T) {
	t.Parallel()
	src, err := source.OpenFS(fstest.MapFS{"in": {Data: []byte(`{"id":{"S":"a"},"v":{"N":"1"}}
{"id":{"S":"b"},"v":{"N":"1"}}
{"id":{"S":"c"},"v":{"S":"1"}}
{"id":{"S":"d"}}
{"id":{"S":"e"}}`)}}, "in", source.Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	conn := newBigtableServer(t)
	r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sidecar    1 cell: type of a value that is not the mapping's\n               (e.g. _t:a/v of item {\"id\":{\"S\":\"c\"}})",
		"sidecar    2 cells: presence of an item that has only key attributes\n               (e.g. _t:i/item/ of item {\"id\":{\"S\":\"d\"}})",
	} {
		if !strings.Contains(r.Text(), want) {
			t.Errorf("%q is not in\n%s", want, r.Text())
		}
	}
	if s := r.Tables[0].Sidecar; len(s) != 2 || s[1].Kind != rowtext.SidecarPresence || s[1].Cells != 2 || s[0].Cells+s[1].Cells != r.Exceptions {
		t.Errorf("sidecar %+v", s)
	}
	r, err = Load(t.Context(), conn, src, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text := r.Text(); r.Compared || strings.Contains(text, "difference") || !strings.Contains(text, "\n5 items, 5 rows, 0 cells written, 3 sidecar cells\nSome tables existed before the load") {
		t.Errorf("text of a load:\n%s", text)
	}
	if _, err := attr.UnmarshalItem([]byte(r.Tables[0].Sidecar[0].Item)); err != nil {
		t.Error(err)
	}
}
