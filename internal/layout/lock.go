package layout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Lock returns the lock of the mapping. It returns an error for a default layout, which has no
// mapping file.
func (m *Mapping) Lock() (mapfile.Lock, error) {
	if m.spec == nil {
		return mapfile.Lock{}, &maperr.SpecError{Code: maperr.CodeSyntax, What: "the default layout has no lock"}
	}
	text, err := m.locked.of(func() ([]byte, error) {
		spec := *m.spec
		if spec.Target.Joiner = cmp.Or(m.proven, spec.Target.Joiner); spec.Target.Joiner == m.spec.Target.Joiner {
			return m.YAML()
		}
		return spec.YAML()
	})
	if err != nil {
		return mapfile.Lock{}, fmt.Errorf("writing the mapping: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(m.spec.Descriptors)) {
		sum := sha256.Sum256(m.spec.Descriptors[name])
		text = fmt.Appendf(text, "%s %x\n", name, sum)
	}
	sum := sha256.Sum256(text)
	lock := mapfile.Lock{
		APIVersion: mapfile.APIVersion, Hash: hex.EncodeToString(sum[:]), Source: m.source, Target: m.target,
		Joiner: m.Joiner(), ListEpoch: ListEpochMillis, Families: []mapfile.LockFamily{},
	}
	l, _ := m.layout.(*rules)
	for _, f := range m.Families() {
		lf := mapfile.LockFamily{Name: f.Name, Versions: f.GC.Versions}
		if f.GC.MaxAge > 0 {
			lf.MaxAge = f.GC.MaxAge.String()
		}
		if l != nil {
			lf.Attribute = l.familyAttr[f.Name]
		}
		lock.Families = append(lock.Families, lf)
	}
	if l != nil {
		lock.Shared = slices.Sorted(maps.Keys(l.sharedAttrs))
	}
	return lock, nil
}
