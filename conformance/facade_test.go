package conformance

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"cloud.google.com/go/bigtable/bttest"

	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

var facadeTests = flag.Bool("conformance.facade", false, "run the tests of package facade and of its store over Bigtables in other processes, which takes about a minute")

// inOneProcess are the tests whose result does not depend on the Bigtable, and that take long
// over a wire: the memory of the facade is measured with a Bigtable elsewhere anyway, ten
// thousand random filters are evaluated here, and the cost of wide rows is counted in calls
// and bytes.
const inOneProcess = "^(Test(Imports|Exports|Backups|Streams)_Memory|TestExecuteStatement_Filter_Point3|TestStore_WideRowCost)$"

// TestFacade_Remote runs the tests of package facade and of its store on Bigtables in other
// processes, over gRPC: a tabletop, and Google's test server.
func TestFacade_Remote(t *testing.T) {
	if !*facadeTests {
		t.Skip("-conformance.facade is not given")
	}
	for name, start := range map[string]func(*testing.T) (addr string){
		"tabletop": func(t *testing.T) string {
			t.Helper()
			p, err := serve("--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--gc", "manual")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			})
			return p.exports["BIGTABLE_EMULATOR_HOST"]
		},
		"bttest": func(t *testing.T) string {
			t.Helper()
			srv, err := bttest.NewServer("127.0.0.1:0", peer.ServerOptions()...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(srv.Close)
			return srv.Addr
		},
	} {
		t.Run(name, func(t *testing.T) {
			suite := exec.CommandContext(t.Context(), "go", "-C", "..", "test", "-count=1", "./facade", "./facade/internal/store", "-skip="+inOneProcess, "-facade.bigtable="+start(t), "-rapid.checks=20")
			suite.Stdout, suite.Stderr = os.Stdout, os.Stderr
			if err := suite.Run(); err != nil {
				t.Errorf("go test ./facade: %v", err)
			}
		})
	}
}
