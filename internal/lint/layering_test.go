package lint

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// layerRule says what the packages at and below a folder may not import. A path
// stands for itself and what is below it; with "$" at its end for itself.
type layerRule struct {
	folder string
	denied []string
	why    string
	tests  bool // it holds for their tests too
}

// Sets of packages that several layers deny.
var (
	storage = []string{module + "/engine", module + "/emu", module + "/internal/inproc", "github.com/cockroachdb/pebble"}
	network = []string{module + "/internal/btclient", "google.golang.org/grpc", "cloud.google.com/go"}
	above   = []string{module + "/facade", module + "/fixtures", module + "/migrate", module + "/control", module + "/testkit", module + "/cmd"}
	mapped  = []string{module + "/facade/mapping", module + "/internal/layout"}
)

// layers are the rules of imports, except for those of onlyTestkit and nowhere.
// The first whose folder matches decides.
var layers = []layerRule{
	// The Bigtable.
	{folder: "engine", denied: slices.Concat(above, network, []string{module + "/emu", "google.golang.org/protobuf"}), why: "the engine is the bottom layer: bytes in, bytes out", tests: true},
	{folder: "emu", denied: slices.Concat(above, []string{module + "/internal/btclient", "github.com/cockroachdb/pebble"}), why: "the emulator serves an engine and knows nothing above it"},

	// The mappings.
	{folder: "internal/cells", denied: []string{module, "google.golang.org", "cloud.google.com/go", "github.com"}, why: "rows are data: who knows what they mean links no client"},
	{folder: "facade/attr", denied: slices.Concat([]string{module}, network), why: "values stand alone"},
	{folder: "facade/expr", denied: slices.Concat(storage, network, mapped, []string{module + "/internal", module + "/fixtures", module + "/migrate"}), why: "expressions know values and nothing of storage"},
	{folder: "internal/layout", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal", module + "/facade/mapping",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "a mapping is a pair of functions between items and rows"},
	{folder: "facade/mapping", denied: slices.Concat(storage, network, []string{module + "/facade$", module + "/facade/expr", module + "/facade/internal"}), why: "the public face of a mapping is as light as the machine"},

	// The DynamoDB.
	{folder: "facade/internal/wire", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store", module + "/facade/internal/tabledef", module + "/internal/cells",
	}), why: "the wire knows requests and values, and nothing of where they are kept"},
	{folder: "facade/internal/capacity", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what is consumed is counted from items, not from rows"},
	{folder: "facade/internal/throttle", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what is too much shows in what is counted and the time"},
	{folder: "facade/internal/keyrules", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/internal/store", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what a key can be shows without a row"},
	{folder: "facade/internal/wording", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/internal/store", module + "/facade/internal/tabledef", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what is wrong with a request shows without a table"},
	{folder: "facade/internal/validation", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/internal/store", module + "/facade/internal/tabledef", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what a request may say shows without a table"},
	{folder: "facade/internal/readsource", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/internal/store", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what is read by shows without a row"},
	{folder: "facade/internal/itemupdate", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/internal/store", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "an update is of an item, not of a row"},
	{folder: "facade/internal/tags", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store", module + "/facade/internal/tabledef", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "tags are texts"},
	{folder: "facade/internal/policy", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "a policy is a text"},
	{folder: "facade/internal/insights", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "whether keys are watched is a state, and how often they are used a count"},
	{folder: "facade/internal/globaltables", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "there are no global tables"},
	{folder: "facade/internal/tableschema", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what a table is to be shows without a row"},
	{folder: "facade/internal/hashorder", denied: slices.Concat([]string{module}, network), why: "the order of names is arithmetic"},
	{folder: "facade/internal/namespaces", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/tabledef",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "whose tables are where says nothing of what is in them"},
	{folder: "facade/internal/partiql", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/internal/store", module + "/facade/internal/tabledef", module + "/facade/internal/wire", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "statements become conditions, updates and key ranges: where items are is not theirs"},
	{folder: "facade/internal/legacy", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/internal/store", module + "/facade/internal/tabledef", "net/http", module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "parameters become expressions: what they act on is not theirs"},
	{folder: "facade/internal/tabledef", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/wire", module + "/facade/internal/store", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what a table is acts on nothing"},
	{folder: "facade/internal/sizes", denied: slices.Concat([]string{module}, network), why: "when tables are counted is nobody's rows"},
	{folder: "facade/internal/changelog", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal", module + "/facade/mapping", module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what a log holds, and its numbers: package store keeps it"},
	{folder: "facade/internal/bucketjobs", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/mapping", module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "exports and imports see the items of a store, not its rows"},
	{folder: "facade/internal/importfile", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "files hold items: which table they are for is not theirs"},
	{folder: "facade/internal/backups", denied: slices.Concat(storage, network, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/mapping",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what recovery is shows without a row"},
	{folder: "facade/internal/jobs", denied: slices.Concat(storage, []string{
		module + "/facade$", module + "/facade/attr", module + "/facade/expr", module + "/facade/internal", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what a job does is its kind's"},
	{folder: "facade/internal/kinesis/worker", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "deliveries are jobs over a store"},
	{folder: "facade/internal/kinesis", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store", module + "/facade/mapping",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "what a stream gets is read from what it is given: package worker gives it a store"},
	{folder: "facade/internal/streams", denied: slices.Concat(storage, network, mapped, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/store", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "which shards a stream has is arithmetic"},
	{folder: "facade/internal/store/inorder", denied: slices.Concat([]string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal", module + "/facade/mapping", module + "/internal/cells", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}, storage, network), why: "the order of items is not that of rows"},
	{folder: "facade/internal/store/lanes", denied: slices.Concat([]string{module}, network), why: "what goes side by side is nobody's call"},
	{folder: "facade/internal/store/segment", denied: slices.Concat([]string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}, storage, network), why: "which rows a segment has is arithmetic"},
	{folder: "facade/internal/store/cuts", denied: slices.Concat(storage, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/wire", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "where a table is cut is said of its row keys"},
	{folder: "facade/internal/store", denied: slices.Concat(storage, []string{
		module + "/facade$", module + "/facade/expr", module + "/facade/internal/wire", module + "/facade/mapping", "net/http",
		module + "/fixtures", module + "/migrate", module + "/testkit",
	}), why: "the store never sees an expression or a request"},
	{folder: "facade", denied: slices.Concat(storage, []string{
		module + "/internal/btclient", module + "/internal/cells", module + "/internal/rowmerge", "cloud.google.com/go",
		module + "/fixtures", module + "/migrate", module + "/control", module + "/testkit",
	}), why: "operations never see a row: package store acts, through the Bigtable API of a connection"},

	// The migration.
	{folder: "fixtures", denied: slices.Concat(storage, []string{
		module + "/facade$", module + "/internal/btclient", module + "/migrate", module + "/testkit", "google.golang.org/grpc",
	}), why: "fixtures are files and their checks: migrate runs them"},
	{folder: "migrate/source", denied: slices.Concat(storage, network, []string{module + "/facade$", module + "/migrate/infer", module + "/migrate/report", module + "/testkit"}), why: "sources are files"},
	{folder: "migrate/infer", denied: slices.Concat(storage, network, []string{module + "/facade$", module + "/migrate/report", module + "/testkit"}), why: "a mapping is found from items alone"},
	{folder: "migrate/report", denied: slices.Concat(storage, network, []string{module + "/facade$", module + "/testkit"}), why: "a report is data: who acts is package migrate"},
	{folder: "migrate/lint", denied: slices.Concat(storage, network, []string{module + "/facade$", module + "/testkit"}), why: "rules judge what they are given"},
	{folder: "migrate/internal/run", denied: slices.Concat(storage, []string{
		module + "/facade$", module + "/migrate$", module + "/migrate/internal/doors", module + "/migrate/internal/differential", module + "/testkit",
	}), why: "a run acts on the tables of Bigtable and opens no DynamoDB door"},
	{folder: "migrate/internal/doors", denied: slices.Concat(storage, []string{module + "/migrate$", module + "/migrate/internal/differential", module + "/testkit"}), why: "doors are over a run"},
	{folder: "migrate/internal/differential", denied: slices.Concat(storage, []string{module + "/migrate$", module + "/testkit"}), why: "trials are over runs and doors"},
	{folder: "migrate/internal/tabletsim", denied: slices.Concat(storage, mapped, []string{
		module + "/facade", module + "/fixtures", module + "/migrate$", module + "/migrate/source", module + "/migrate/internal/doors", module + "/migrate/internal/differential", module + "/testkit",
	}), why: "a model drives the writing side of a load, and knows no items"},
	{folder: "migrate", denied: slices.Concat(storage, []string{module + "/control", module + "/testkit"}), why: "migration takes a connection"},

	// The control.
	{folder: "control/lab", denied: []string{module + "/control", module + "/fixtures", module + "/migrate", module + "/testkit", module + "/cmd", "github.com/cockroachdb/pebble"}, why: "a lab is a store with its doors"},
	{folder: "control/console", denied: slices.Concat([]string{module}, network), why: "pages are files: what they show comes from the API"},
	{folder: "control/internal/access", denied: slices.Concat([]string{module}, []string{"google.golang.org/grpc", "github.com/cockroachdb/pebble"}), why: "an access pattern is a text"},
	{folder: "control", denied: []string{module + "/testkit", module + "/cmd", "github.com/cockroachdb/pebble"}, why: "what controls a server links no test code"},

	// The rest.
	{folder: "cmd", denied: []string{module + "/testkit", "github.com/cockroachdb/pebble"}, why: "a command links no test code"},
	{folder: "internal/extsort", denied: slices.Concat(storage, network, []string{module + "/facade$", module + "/facade/expr", module + "/fixtures", module + "/migrate", module + "/testkit"}), why: "what is sorted are values and cells"},
	{folder: "internal/s3export", denied: slices.Concat(storage, network, mapped, []string{module + "/facade$", module + "/facade/expr", module + "/facade/internal", module + "/fixtures", module + "/migrate", module + "/testkit"}), why: "an export is items and files, which the door and the migration share"},
	{folder: "internal/iontext", denied: slices.Concat(storage, network, mapped, []string{module + "/facade$", module + "/facade/expr", module + "/facade/internal", module + "/fixtures", module + "/migrate", module + "/testkit"}), why: "a text of Ion is of items"},
	{folder: "internal/csvtext", denied: []string{module, "github.com", "google.golang.org"}, why: "records are cells of text"},
	{folder: "internal", denied: above, why: "what is internal serves the layers, not the other way round"},
}

// onlyTestkit lists imports that only testkit, and the packages that tests share, have
// outside of tests.
var onlyTestkit = []string{
	"testing", "github.com/stretchr/testify", "github.com/aws",
	"cloud.google.com/go/bigtable$", "cloud.google.com/go/bigtable/bttest",
}

// nowhere lists imports that have another path today: no file has them.
var nowhere = map[string]string{
	"github.com/golang/protobuf": "google.golang.org/protobuf",
	"golang.org/x/exp/slices":    "slices",
	"golang.org/x/exp/maps":      "maps",
}

// refused says why files of a folder may not import a package, "" where they may;
// layer is the folder of the rule that decided, "" where none did.
func refused(folder, imported string, test bool) (layer, why string) {
	for stale, current := range nowhere {
		if matches(imported, stale) {
			return "", "use " + current
		}
	}
	if !test && !within(folder, "testkit") && !within(folder, "migrate/internal/exporttest") && !within(folder, "internal/test") && slices.ContainsFunc(onlyTestkit, func(p string) bool { return matches(imported, p) }) {
		return "", "only testkit does"
	}
	i := slices.IndexFunc(layers, func(l layerRule) bool { return within(folder, l.folder) })
	if i < 0 || test && !layers[i].tests {
		return "", ""
	}
	l := layers[i]
	if !within(imported, module+"/"+l.folder) && slices.ContainsFunc(l.denied, func(p string) bool { return matches(imported, p) }) {
		return l.folder, l.why
	}
	return l.folder, ""
}

func TestLayering(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		folder := path.Dir(f.path)
		for _, imported := range f.imports {
			layer, why := refused(folder, imported, f.test)
			seen[layer] = true
			if why != "" {
				t.Errorf("%s imports %s: %s", f.path, imported, why)
			}
		}
	}
	for _, l := range layers {
		if !seen[l.folder] {
			t.Errorf("no package with imports is at or below %s: the rule checks nothing", l.folder)
		}
	}
}

// TestLayers: what each rule is for is refused, and what the layers need is not.
func TestLayers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		folder, imported string // ~ is the module
		test, refused    bool
	}{
		{"engine", "~/emu", false, true},
		{"engine", "~/emu", true, true},
		{"engine", "google.golang.org/grpc/codes", false, true},
		{"engine", "github.com/cockroachdb/pebble/v2/vfs", false, false},
		{"emu/internal/filter", "~/facade/attr", false, true},
		{"emu", "~/facade", true, false},
		{"emu", "~/emu/internal/wire", false, false},
		{"internal/cells", "~/facade/attr", false, true},
		{"internal/cells", "bytes", false, false},
		{"facade/attr", "~/internal/pull", false, true},
		{"facade/expr", "~/internal/layout", false, true},
		{"facade/expr", "~/facade/attr", false, false},
		{"internal/layout", "google.golang.org/grpc/status", false, true},
		{"internal/layout", "~/facade", false, true},
		{"internal/layout", "~/facade/attr", false, false},
		{"internal/layout/codec", "~/internal/btclient", false, true},
		{"internal/layout/codec", "~/internal/layout/rowkey", false, false},
		{"facade/mapping", "~/facade/internal/store", false, true},
		{"facade/mapping", "~/internal/layout", false, false},
		{"facade/internal/wire", "~/internal/layout", false, true},
		{"facade/internal/wire", "~/facade/attr", false, false},
		{"facade/internal/wire", "~/facade/internal/tabledef", false, true},
		{"facade/internal/tabledef", "~/facade/internal/store", false, true},
		{"facade/internal/tabledef", "~/internal/btclient", false, true},
		{"facade/internal/tabledef", "~/internal/layout", false, false},
		{"facade/internal/store", "~/facade/internal/tabledef", false, false},
		{"facade/internal/sizes", "~/internal/layout", false, true},
		{"facade/internal/store", "~/facade/expr", false, true},
		{"facade/internal/store", "~/facade", false, true},
		{"facade/internal/store", "~/internal/btclient", false, false},
		{"facade", "~/internal/cells", false, true},
		{"facade", "~/emu", false, true},
		{"facade", "~/facade/internal/store", false, false},
		{"fixtures", "~/migrate/report", false, true},
		{"fixtures", "~/facade", false, true},
		{"fixtures", "~/facade/mapping", false, false},
		{"migrate/report", "~/internal/btclient", false, true},
		{"migrate/infer", "~/migrate/report", false, true},
		{"migrate/infer", "~/migrate/source", false, false},
		{"migrate/internal/run", "~/facade", false, true},
		{"migrate/internal/run", "~/migrate/internal/doors", false, true},
		{"migrate/internal/doors", "~/engine", false, true},
		{"migrate/internal/doors", "~/migrate/internal/run", false, false},
		{"migrate", "~/facade", false, false},
		{"control/lab", "~/migrate", false, true},
		{"control/lab", "~/facade", false, false},
		{"control", "~/testkit", false, true},
		{"control/console", "~/control/lab", false, true},
		{"control/internal/requests", "~/control/lab", false, false},
		{"control/internal/access", "~/fixtures", false, true},
		{"facade", "~/control/lab", false, true},
		{"cmd/tabletop", "~/testkit", false, true},
		{"internal/extsort", "~/fixtures", false, true},
		{"internal/s3export", "~/migrate/source", false, true},
		{"internal/s3export", "~/facade/attr", false, false},
		{"internal/model", "~/engine", false, false},
		{"facade", "testing/iotest", false, true},
		{"testkit", "testing", false, false},
		{"testkit", "golang.org/x/exp/slices", true, true},
	} {
		if _, why := refused(c.folder, strings.Replace(c.imported, "~", module, 1), c.test); (why != "") != c.refused {
			t.Errorf("%s (tests: %v) imports %s: %q; want refused: %v", c.folder, c.test, c.imported, why, c.refused)
		}
	}
}

// within tells whether folder is parent or lies below it.
func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// matches tells whether a path is the pattern or below it; the pattern itself if
// that ends in "$".
func matches(p, pattern string) bool {
	if whole, ok := strings.CutSuffix(pattern, "$"); ok {
		return p == whole
	}
	return within(p, pattern)
}

// TestNoJunkDrawers keeps files named after what a reader looks up.
func TestNoJunkDrawers(t *testing.T) {
	t.Parallel()
	banned := map[string]bool{"utils": true, "util": true, "helpers": true, "helper": true, "common": true, "types": true, "misc": true}
	for _, f := range productionFiles(t) {
		stem := strings.TrimSuffix(path.Base(f.path), ".go")
		if banned[stem] || banned[path.Base(path.Dir(f.path))] {
			t.Errorf("%s: name it after what a reader looks up", f.path)
		}
	}
}
