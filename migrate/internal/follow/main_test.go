package follow_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tabletop-emu/tabletop/internal/test/memory"
)

func TestMain(m *testing.M) {
	memory.CollectSeldom()
	goleak.VerifyTestMain(m)
}
