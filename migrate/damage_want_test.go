package migrate

import (
	"testing"

	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

func WantDamage(t *testing.T, err error, damage source.Damage, text string) {
	t.Helper()
	exporttest.WantDamage(t, err, source.DamageOf(err), damage, text)
}
