package instancedef

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// These are the limits of labels; see Instance.labels.
const (
	MaxLabels     = 64  // per instance
	MaxLabelRunes = 63  // per key, and per value
	maxLabelBytes = 127 // under 128
)

// Check checks the new state of an instance. Its errors are statuses of package refusal.
func Check(in *btapb.Instance, m limits.Mode) error {
	if typ := in.GetType(); typ != btapb.Instance_PRODUCTION && typ != btapb.Instance_DEVELOPMENT {
		return refusal.Invalid("instance.type", "%d is not a known type", typ)
	}
	if _, ok := btapb.Instance_Edition_name[int32(in.GetEdition())]; !ok {
		return refusal.Invalid("instance.edition", "%d is not a known edition", in.GetEdition())
	}
	if in.GetDisplayName() == "" {
		return refusal.Invalid("instance.display_name", "must be set")
	}
	return CheckLabels(in.GetLabels(), m)
}

// CheckLabels checks labels against the rules of Instance.labels.
func CheckLabels(labels map[string]string, m limits.Mode) error {
	const field = "instance.labels"
	if err := m.Check(len(labels), MaxLabels, field, "labels"); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		first, _ := utf8.DecodeRuneInString(key)
		if !unicode.Is(unicode.Ll, first) && !unicode.Is(unicode.Lo, first) || !isLabelText(key) {
			return refusal.Invalid(field, `the key %q does not match [\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}`, key)
		}
		if !isLabelText(value) {
			return refusal.Invalid(field, `the value %q does not match [\p{Ll}\p{Lo}\p{N}_-]{0,63}`, value)
		}
		for _, text := range []string{key, value} {
			if err := m.Check(utf8.RuneCountInString(text), MaxLabelRunes, field, "characters"); err != nil {
				return err
			}
			if err := m.Check(len(text), maxLabelBytes, field, "bytes"); err != nil {
				return err
			}
		}
	}
	return nil
}

func isLabelText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || r != '_' && r != '-' && !unicode.In(r, unicode.Ll, unicode.Lo, unicode.N)
	})
}

// ImplicitCluster and ImplicitZone are the id and the zone of the cluster of an implicit instance.
const (
	ImplicitCluster = "c"
	ImplicitZone    = "local-a"
)
