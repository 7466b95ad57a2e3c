package lint

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// layerRule lists imports that the packages at and below some folders may not have. A path
// includes the paths below it; with "$" at its end it does not.
type layerRule struct {
	folders []string
	denied  []string
	why     string
	tests   bool // the rule also applies to their tests
}

// Sets of packages that several layers deny.
var (
	storage = []string{module + "/engine", module + "/emu", module + "/internal/inproc", "github.com/cockroachdb/pebble"}
	network = []string{module + "/internal/btclient", "google.golang.org/grpc", "cloud.google.com/go"}
	// Packages that know DynamoDB, except attr.
	dynamoDB = []string{module + "/facade$", module + "/facade/awserr", module + "/facade/expr", module + "/facade/internal", module + "/facade/maperr", module + "/facade/mapping", "github.com/aws"}
	tools    = []string{module + "/fixtures", module + "/migrate", module + "/control", module + "/testkit", module + "/cmd"}
)

// layers are the rules of imports, except for those of onlyTestkit and nowhere. The first rule
// with a matching folder decides.
var layers = []layerRule{
	{
		folders: []string{"engine"},
		denied:  slices.Concat(tools, network, []string{module + "/cells", module + "/emu", module + "/facade", "google.golang.org/protobuf"}),
		why:     "the engine stores bytes, and compiles without gRPC and protobuf",
		tests:   true,
	},
	{
		folders: []string{"emu"},
		denied:  slices.Concat(tools, []string{module + "/facade", module + "/internal/btclient", "github.com/cockroachdb/pebble"}),
		why:     "the Bigtable server knows nothing of DynamoDB, and of the store only what engine exports",
	},
	{
		folders: []string{"facade/attr", "facade/awserr", "facade/expr", "facade/maperr"},
		denied:  slices.Concat(tools, storage, network, []string{module + "/cells", module + "/internal", module + "/facade/internal", module + "/facade/mapping"}),
		why:     "values, expressions and errors of DynamoDB depend on no storage, so that every layer can use them",
	},
	{
		folders: []string{"cells", "internal/layout", "facade/mapping"},
		denied:  slices.Concat(tools, storage, network, []string{module + "/facade$", module + "/facade/expr", module + "/facade/internal"}),
		why:     "a mapping converts between items and rows, and calls nothing",
	},
	{
		folders: []string{"facade/internal/store"},
		denied:  slices.Concat(tools, storage, []string{module + "/facade$", module + "/facade/awserr", module + "/facade/expr", module + "/facade/mapping", module + "/facade/internal/wire", "net/http"}),
		why:     "the store reads and writes items, and sees neither a request nor an expression nor an answer",
	},
	{
		folders: []string{"facade/internal/wire", "facade/internal/tabledef", "facade/internal/partiql"},
		denied:  slices.Concat(tools, storage, network, []string{module + "/facade$", module + "/facade/mapping", module + "/facade/internal/store"}),
		why:     "requests, statements and definitions of tables are checked without a row",
	},
	{
		folders: []string{"facade/internal"},
		denied:  slices.Concat(tools, storage, []string{module + "/facade$"}),
		why:     "the DynamoDB endpoint works over any Bigtable",
	},
	{
		folders: []string{"facade"},
		denied:  slices.Concat(tools, storage, []string{module + "/internal/btclient", module + "/cells", module + "/internal/rowmerge", "cloud.google.com/go"}),
		why:     "operations never see a row: the store reads and writes them, over any Bigtable",
	},
	{
		folders: []string{"fixtures"},
		denied:  slices.Concat(storage, network, []string{module + "/facade$", module + "/migrate", module + "/control", module + "/testkit", module + "/cmd"}),
		why:     "fixtures are files and their checks, which migrate runs",
	},
	{
		folders: []string{"migrate/stream"},
		denied: slices.Concat(storage, network, []string{
			module + "/facade$", module + "/control", module + "/testkit", module + "/cmd",
			"github.com/aws/aws-sdk-go-v2/config", "github.com/aws/aws-sdk-go-v2/credentials",
		}),
		why: "it reads a stream through the clients of its caller, and knows neither credentials nor the target",
	},
	{
		folders: []string{"migrate/source", "migrate/infer", "migrate/report", "migrate/lint"},
		denied:  slices.Concat(storage, network, []string{module + "/facade$", module + "/control", module + "/testkit", module + "/cmd"}),
		why:     "what reads and judges files runs without a server",
	},
	{
		folders: []string{"migrate/internal/compare"},
		denied:  slices.Concat(storage, []string{module + "/control", module + "/testkit", module + "/cmd", module + "/migrate/internal/load"}),
		why:     "a comparison that shared the code of the load would share its faults, and find none",
	},
	{
		folders: []string{"migrate"},
		denied:  slices.Concat(storage, []string{module + "/control", module + "/testkit", module + "/cmd"}),
		why:     "a migration works over any Bigtable",
	},
	{
		folders: []string{"control/lab/dynamodb"},
		denied: []string{
			module + "/control$", module + "/control/console", module + "/control/internal", module + "/fixtures", module + "/migrate",
			module + "/testkit", module + "/cmd", "github.com/cockroachdb/pebble",
		},
		why: "a test that starts a server links neither tools nor pages",
	},
	{
		folders: []string{"control/lab", "testkit/btkit", "testkit/internal"},
		denied:  slices.Concat(tools, dynamoDB, []string{"github.com/cockroachdb/pebble"}),
		why:     "a test that uses only Bigtable compiles nothing of DynamoDB",
	},
	{
		folders: []string{"control", "cmd"},
		denied:  []string{module + "/testkit", "github.com/cockroachdb/pebble"},
		why:     "the program links no test code",
	},
	{
		folders: []string{"internal/test/failures"},
		denied:  []string{module + "/testkit", module + "/control", module + "/cmd"},
		why:     "it lets the calls of the DynamoDB endpoint and of loads fail",
	},
	{
		folders: []string{"internal/test/labserver"},
		denied:  []string{module + "/testkit", module + "/cmd"},
		why:     "it starts the servers of control's tests",
	},
	{
		folders: []string{"internal"},
		denied:  slices.Concat(tools, []string{module + "/facade$", module + "/facade/expr", module + "/facade/internal"}),
		why:     "these packages serve the layers and use none but attr, maperr and mapping",
	},
}

// onlyTestkit lists imports that only testkit, and the packages that tests share, have outside
// of tests. The folders in liveSources also have the clients of AWS.
var onlyTestkit = []string{
	"testing", "github.com/stretchr/testify", "github.com/aws",
	"cloud.google.com/go/bigtable$", "cloud.google.com/go/bigtable/bttest",
}

// liveSources read live tables of AWS: migrate/stream through the clients that cmd/tabletop makes.
var liveSources = []string{"migrate/stream", "cmd/tabletop"}

// onlyCommand lists imports that only cmd/tabletop has: the search for credentials in files,
// variables and metadata servers.
var onlyCommand = []string{"github.com/aws/aws-sdk-go-v2/config", "github.com/aws/aws-sdk-go-v2/feature"}

// fastHTTP is the library of the program's DynamoDB endpoint. Only onlyFast imports it, which only
// cmd/tabletop does outside of tests: embedders and their tests link package net/http alone.
const (
	fastHTTP = "github.com/valyala/fasthttp"
	onlyFast = "internal/fastserver"
)

// nowhere lists imports that no file has, and their replacements. Templates look methods up by name,
// for which the linker keeps all exported methods of the program.
var nowhere = map[string]string{
	"html/template":              "functions that escape their arguments",
	"text/template":              "fmt",
	"github.com/golang/protobuf": "google.golang.org/protobuf",
	"golang.org/x/exp/slices":    "slices",
	"golang.org/x/exp/maps":      "maps",
}

// refused returns why files of a folder may not import a package, "" if they may; layer is the
// folder of the deciding rule, "" without one.
func refused(folder, imported string, test bool) (layer, why string) {
	for stale, current := range nowhere {
		if matches(imported, stale) {
			return "", "use " + current
		}
	}
	if folder != "cmd/tabletop" && slices.ContainsFunc(onlyCommand, func(p string) bool { return matches(imported, p) }) {
		return "", "only cmd/tabletop looks for credentials"
	}
	if matches(imported, fastHTTP) && folder != onlyFast || matches(imported, module+"/"+onlyFast) && !test && folder != "cmd/tabletop" {
		return "", "only the program serves with fasthttp"
	}
	ofSource := matches(imported, "github.com/aws") && slices.ContainsFunc(liveSources, func(in string) bool { return within(folder, in) })
	if !test && !ofSource && !within(folder, "testkit") && !within(folder, "migrate/internal/exporttest") && !within(folder, "internal/test") && slices.ContainsFunc(onlyTestkit, func(p string) bool { return matches(imported, p) }) {
		return "", "only testkit does"
	}
	i := slices.IndexFunc(layers, func(l layerRule) bool {
		return slices.ContainsFunc(l.folders, func(in string) bool { return within(folder, in) })
	})
	if i < 0 || test && !layers[i].tests {
		return "", ""
	}
	l := layers[i]
	own := slices.ContainsFunc(l.folders, func(in string) bool { return within(imported, module+"/"+in) })
	if !own && slices.ContainsFunc(l.denied, func(p string) bool { return matches(imported, p) }) {
		return l.folders[0], l.why
	}
	return l.folders[0], ""
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
		if !seen[l.folders[0]] {
			t.Errorf("no package with imports is at or below %v: the rule checks nothing", l.folders)
		}
	}
}

// TestLayers checks that each rule refuses its imports, and allows those that the layers need.
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
		{"cells", "bytes", false, false},
		{"facade/attr", "~/internal/pull", false, true},
		{"facade/expr", "~/internal/layout", false, true},
		{"facade/expr", "~/facade/attr", false, false},
		{"facade/awserr", "~/facade/attr", false, false},
		{"facade/awserr", "~/facade/internal/wire", false, true},
		{"facade/maperr", "~/facade/attr", false, false},
		{"facade/maperr", "~/internal/layout", false, true},
		{"internal/layout", "google.golang.org/grpc/status", false, true},
		{"internal/layout", "~/facade", false, true},
		{"internal/layout", "~/facade/attr", false, false},
		{"internal/layout/codec", "~/internal/btclient", false, true},
		{"internal/layout/codec", "~/internal/layout/rowkey", false, false},
		{"facade/mapping", "~/facade/internal/store", false, true},
		{"facade/mapping", "~/internal/layout", false, false},
		{"facade/internal/wire", "~/facade/attr", false, false},
		{"facade/internal/tabledef", "~/facade/internal/store", false, true},
		{"facade/internal/tabledef", "~/internal/btclient", false, true},
		{"facade/internal/tabledef", "~/internal/layout", false, false},
		{"facade/internal/store", "~/facade/internal/tabledef", false, false},
		{"facade/internal/store", "~/facade/expr", false, true},
		{"facade/internal/store", "~/facade/awserr", false, true},
		{"facade/internal/store", "~/facade", false, true},
		{"facade/internal/store", "~/internal/btclient", false, false},
		{"facade", "~/cells", false, true},
		{"facade", "~/emu", false, true},
		{"facade", "~/facade/internal/store", false, false},
		{"fixtures", "~/migrate/report", false, true},
		{"fixtures", "~/facade", false, true},
		{"fixtures", "~/facade/mapping", false, false},
		{"migrate/report", "~/internal/btclient", false, true},
		{"migrate/infer", "~/migrate/source", false, false},
		{"migrate/source", "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams", false, true},
		{"migrate/stream", "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams", false, false},
		{"migrate/stream", "github.com/aws/aws-sdk-go-v2/config", false, true},
		{"migrate/stream", "~/internal/btclient", false, true},
		{"migrate/stream", "~/testkit", false, true},
		{"migrate/internal/endpoints", "~/engine", false, true},
		{"migrate/internal/endpoints", "~/migrate/internal/table", false, false},
		{"migrate/internal/compare", "~/migrate/internal/load", false, true},
		{"migrate", "~/facade", false, false},
		{"control/lab", "~/migrate", false, true},
		{"control/lab", "~/facade", false, true},
		{"control/lab", "~/facade/awserr", false, true},
		{"control/lab/changestream", "~/control/lab", false, false},
		{"control/lab/dynamodb", "~/facade", false, false},
		{"control/lab/dynamodb", "~/control", false, true},
		{"control/lab/dynamodb", "~/control/lab/fault", false, false},
		{"testkit/btkit", "~/facade", false, true},
		{"testkit/btkit", "~/testkit", false, true},
		{"testkit/btkit", "~/migrate/report", false, true},
		{"testkit/btkit", "github.com/aws/aws-sdk-go-v2/aws", false, true},
		{"testkit/btkit", "~/testkit/internal/server", false, false},
		{"testkit/internal/server", "~/fixtures", false, true},
		{"testkit/internal/server", "~/control/lab", false, false},
		{"testkit", "~/facade", false, false},
		{"control", "~/testkit", false, true},
		{"control/internal/requests", "~/control/lab", false, false},
		{"facade", "~/control/lab", false, true},
		{"cmd/tabletop", "~/testkit", false, true},
		{"cmd/tabletop", "github.com/aws/aws-sdk-go-v2/config", false, false},
		{"cmd/cbtemulator", "github.com/aws/aws-sdk-go-v2/aws", false, true},
		{"testkit", "github.com/aws/aws-sdk-go-v2/config", true, true},
		{"testkit", "github.com/aws/aws-sdk-go-v2/feature/ec2/imds", false, true},
		{"testkit", "github.com/aws/aws-sdk-go-v2/credentials", false, false},
		{"internal/extsort", "~/fixtures", false, true},
		{"internal/s3export", "~/migrate/source", false, true},
		{"internal/s3export", "~/facade/attr", false, false},
		{"internal/model", "~/engine", false, false},
		{"facade", "testing/iotest", false, true},
		{"facade", "~/internal/fastserver", false, true},
		{"facade", "~/internal/fastserver", true, false},
		{"facade", "github.com/valyala/fasthttp", true, true},
		{"testkit", "~/internal/fastserver", false, true},
		{"cmd/tabletop", "~/internal/fastserver", false, false},
		{"internal/fastserver", "github.com/valyala/fasthttp", false, false},
		{"testkit", "testing", false, false},
		{"testkit", "golang.org/x/exp/slices", true, true},
	} {
		if _, why := refused(c.folder, strings.Replace(c.imported, "~", module, 1), c.test); (why != "") != c.refused {
			t.Errorf("%s (tests: %v) imports %s: %q; want refused: %v", c.folder, c.test, c.imported, why, c.refused)
		}
	}
}

// TestLayering_Emulator checks that cmd/cbtemulator, a Bigtable alone, links no client of AWS.
func TestLayering_Emulator(t *testing.T) {
	t.Parallel()
	imports := map[string][]string{} // by folder
	for _, f := range productionFiles(t) {
		imports[path.Dir(f.path)] = append(imports[path.Dir(f.path)], f.imports...)
	}
	// chain returns how a folder imports a client of AWS, "" if it does not.
	var chain func(folder string, seen map[string]bool) string
	chain = func(folder string, seen map[string]bool) string {
		seen[folder] = true
		for _, imported := range imports[folder] {
			if matches(imported, "github.com/aws") {
				return folder + " imports " + imported
			}
			if in, ok := strings.CutPrefix(imported, module+"/"); ok && !seen[in] {
				if found := chain(in, seen); found != "" {
					return folder + " -> " + found
				}
			}
		}
		return ""
	}
	if found := chain("cmd/cbtemulator", map[string]bool{}); found != "" {
		t.Errorf("the emulator of Bigtable alone links a client of AWS: %s", found)
	}
	if chain("cmd/tabletop", map[string]bool{}) == "" {
		t.Error("cmd/tabletop has clients of AWS, but this test does not find them")
	}
}

// within reports whether folder is parent or below it.
func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// matches reports whether a path is the pattern or below it; with "$" at the pattern's end,
// only whether it is the pattern.
func matches(p, pattern string) bool {
	if whole, ok := strings.CutSuffix(pattern, "$"); ok {
		return p == whole
	}
	return within(p, pattern)
}

// TestNoJunkDrawers checks that files are named after their subject.
func TestNoJunkDrawers(t *testing.T) {
	t.Parallel()
	banned := map[string]bool{"utils": true, "util": true, "helpers": true, "helper": true, "common": true, "types": true, "misc": true}
	for _, f := range productionFiles(t) {
		stem := strings.TrimSuffix(path.Base(f.path), ".go")
		if banned[stem] || banned[path.Base(path.Dir(f.path))] {
			t.Errorf("%s: name it after the subject that a reader looks up", f.path)
		}
	}
}
