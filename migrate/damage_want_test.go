package migrate

import (
	"errors"
	"strings"
	"testing"
)

func wantDamage(t *testing.T, err error, damage Damage, text string) {
	t.Helper()
	var input *InputError
	if !errors.As(err, &input) {
		t.Fatalf("error %v, want an InputError", err)
	}
	if input.Damage != damage || !strings.Contains(err.Error(), text) {
		t.Errorf("damage %s, message %q; want %s, %q", input.Damage, err, damage, text)
	}
}
