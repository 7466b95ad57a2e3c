package control_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/shownby"
)

// acceptance is what the control API and the console must show, and what shows it: a test, or a text in a file that runs
// in another language.
var acceptance = []struct {
	point   string
	shownBy []string
	files   map[string]string
}{
	{
		"by HTTP alone: items, a snapshot, half of them deleted, restored, expired behind both doors, a fault that a client outlives",
		[]string{"TestAcceptance", "cmd/tabletop:TestConsole"},
		map[string]string{
			"clients/python/test_tabletop.py": "def test_acceptance", "clients/javascript/tabletop.test.mjs": "test('acceptance'", "clients/java/TabletopTest.java": "items that did not expire",
			"conformance/python/run.py": "UNAVAILABLE", "conformance/js/control.mjs": "UNAVAILABLE", "conformance/java/Control.java": "UNAVAILABLE",
		},
	},
	{
		"parallel workers on a server each",
		[]string{"conformance/clients:TestClients"},
		map[string]string{"clients/python/test_tabletop.py": "def test_parallel_workers", "clients/javascript/tabletop.test.mjs": "test('parallel workers'", "clients/java/TabletopTest.java": "void parallelWorkers"},
	},
	{"no allocation where it is off, and none more where it is on", []string{"facade:TestObserve_Off", "emu:TestAllocationsOfHooks", "control/internal/requests:TestAllocations_Kept", "internal/heat:TestAllocations"}, nil},
	{"an attribute lights the cells that the mapping wrote, and back, on all fixtures", []string{"TestCarried_Exactly", "TestCarried_Fixtures", "conformance/console:TestPages_Fixtures"}, nil},
	{"an edit shows the cells that it changes, and no other", []string{"TestPreviewItem_Fixtures", "conformance/console:TestItem_Edit"}, nil},
	{"hostile rows and items are shown and never obeyed", []string{"TestHostile", "conformance/console:TestPages_Hostile", "conformance/console:TestStreams"}, nil},
	{"pages are empty without a word of blame", []string{"conformance/console:TestPages_Empty", "conformance/console:TestPages_NoToken"}, nil},
	{"the first page has at most 60 kB, all 300", []string{"control/console:TestSizes"}, nil},
	{"100,000 names are filtered", []string{"conformance/console:TestHome_Names"}, nil},
	{"100,000 rows and 10,000 columns scroll", []string{"conformance/console:TestScroll", "conformance/console:TestNarrow"}, nil},
	{"keys and names for who sees no page, or has no mouse", []string{"conformance/console:TestKeyboard"}, nil},
	{"the native reads of a DynamoDB request", []string{"TestRequests", "conformance/console:TestRequests_Live", "conformance/console:TestQuery"}, nil},
	{"100 clients and 10,000 requests, none lost, in the order of completion, beside a viewer that does not read", []string{"TestRequests_Many", "TestEvents_Unread", "control/internal/requests:TestMemory"}, nil},
	{"the 14 patterns of s5-order-entry, saved, pass migrate verify", []string{"TestPattern_OrderEntry"}, nil},
	{"the picture of known load, and what ListHotTablets names", []string{"TestHeat", "conformance/console:TestKeys", "internal/heat:TestSums"}, nil},
	{"hot rows, ascending writes and large rows are marked with their rules", []string{"conformance/console:TestKeys", "conformance/console:TestKeys_LargeRow", "TestHeat_LargeRows"}, nil},
	{"a day of 1,000 buckets in 32 MiB", []string{"internal/heat:TestDay"}, nil},
	{"a line of a mapping is changed: rows, losses and findings of 20 items", []string{"TestPreview", "TestPreview_Fixtures", "conformance/console:TestWorkbench", "conformance/console:TestWorkbench_Link"}, nil},
	{"a test that failed stays open", []string{"testkit:TestHold_Failed", "testkit:TestHold", "testkit:TestHold_Deadline"}, nil},
	{"demo keeps all fixtures open", []string{"cmd/tabletop:TestDemo_Console"}, nil},
	{"families, rules and rows are changed from the page", []string{"TestTableAdmin", "conformance/console:TestTable", "conformance/console:TestRows_Collected"}, nil},
	{"requests become a trace that lint judges", []string{"TestTrace"}, nil},
	{"what both doors tell of one write", []string{"TestStreams", "TestStreams_Follow", "TestStreams_Bounds", "conformance/console:TestStreams"}, nil},
	{"bounds of bodies, streams, rings and snapshots", []string{"TestBody_Slow", "TestEvents_Maximum", "TestSnapshots_Bounds", "control/internal/requests:TestBounds"}, nil},
	{"bad hosts, origins and tokens", []string{"TestRefusals", "TestPages", "cmd/tabletop:TestDoors_WebPages"}, nil},
	{"what testkit has, the API and ctl have, or there is a reason", []string{"testkit:TestControl_Parity", "TestOpenAPI"}, nil},
	{"docs/control.md is what happens", []string{"cmd/tabletop:TestControlDocs"}, nil},
}

// TestAcceptance_Shown: what is to show each point is there.
func TestAcceptance_Shown(t *testing.T) {
	t.Parallel()
	for _, a := range acceptance {
		for _, what := range a.shownBy {
			if err := shownby.Find("..", what); err != nil {
				t.Errorf("%s: %v", a.point, err)
			}
		}
		for file, text := range a.files {
			has, err := fs.ReadFile(os.DirFS(".."), file)
			if err != nil || !strings.Contains(string(has), text) {
				t.Errorf("%s: %s has no %q: %v", a.point, file, text, err)
			}
		}
	}
}
