package testkit_test

import (
	"flag"
	"testing"

	"github.com/tabletop-emu/tabletop/testkit"
)

// update makes `go test -update` rewrite the golden files of fixtures.
var update = testkit.UpdateFlag(flag.CommandLine)

// A fixture whose golden files `go test -update` writes.
func ExampleUpdateFlag() {
	testVideos := func(t *testing.T) { //nolint:thelper // it stands for func TestVideos
		testkit.RunFixtures(t, "testdata/fixtures/videos", update)
	}
	_ = testVideos
}
