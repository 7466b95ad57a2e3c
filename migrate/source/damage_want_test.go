package source

import (
	"errors"
	"strings"
	"testing"
)

func WantDamage(t *testing.T, err error, damage Damage, text string) {
	t.Helper()
	var input *Error
	if !errors.As(err, &input) {
		t.Fatalf("error %v, want an Error", err)
	}
	if input.Damage != damage || !strings.Contains(err.Error(), text) {
		t.Errorf("damage %s, message %q; want %s, %q", input.Damage, err, damage, text)
	}
}
