package testkit_test

import (
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/failures"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// TestMatrix makes calls to Bigtable fail in every way, under the endpoint, loads and verifications.
func TestMatrix(t *testing.T) {
	t.Parallel()
	failures.Matrix(t, long.Enabled())
}

// TestQuota loads and serves over a Bigtable that accepts few rows at a time.
func TestQuota(t *testing.T) {
	t.Parallel()
	failures.Quota(t)
}
