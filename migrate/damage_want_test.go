package migrate

import (
	"errors"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/migrate/source"
)

func WantDamage(t *testing.T, err error, damage source.Damage, text string) {
	t.Helper()
	var input *source.Error
	if !errors.As(err, &input) {
		t.Fatalf("error %v, want an Error", err)
	}
	if input.Damage != damage || !strings.Contains(err.Error(), text) {
		t.Errorf("damage %s, message %q; want %s, %q", input.Damage, err, damage, text)
	}
}
