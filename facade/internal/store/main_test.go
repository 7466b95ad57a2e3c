package store

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tabletop-emu/tabletop/internal/test/memory"
)

func TestMain(m *testing.M) {
	memory.CollectSeldom()
	goleak.VerifyTestMain(m)
}

// testTime is the start time of every test.
var testTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
