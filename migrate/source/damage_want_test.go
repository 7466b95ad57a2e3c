package source

import (
	"testing"

	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

func WantDamage(t *testing.T, err error, damage Damage, text string) {
	t.Helper()
	exporttest.WantDamage(t, err, DamageOf(err), damage, text)
}
