package migrate

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // hundreds of small stores come and go: by default a quarter of the time goes into collecting them
	goleak.VerifyTestMain(m)
}
