package mapfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/maperr"
)

// CheckWords checks the fields of a Spec that must be one of several words. Parse has already
// checked them for the Specs it returns.
func (s *Spec) CheckWords() (faults []*maperr.SpecError) {
	word := func(path, text string, words ...string) {
		if text != "" && !slices.Contains(words, text) {
			faults = append(faults, s.Fault(path, maperr.CodeSyntax, fmt.Sprintf("%q", text), strings.Join(words, ", ")))
		}
	}
	word("fidelity", s.Fidelity, FidelityTyped, FidelityIdiomatic, FidelityBlob)
	word("compat", s.Compat, CompatGoogleUtility)
	word("on.collision", s.Collision, CollisionError, CollisionQualifier)
	word("on.unknown-attribute", s.UnknownAttribute, UnknownError, UnknownSidecar)
	for i, l := range s.AcceptLoss {
		word(fmt.Sprintf("accept_loss[%d].what", i), l.What, losses...)
	}
	for i, g := range s.Source.GSIs {
		word(fmt.Sprintf("source.gsis[%d].as", i), g.As, IndexAsTable, IndexAsView, IndexAsNone)
		word(fmt.Sprintf("source.gsis[%d].projection", i), g.Projection, ProjectAll, ProjectKeysOnly)
	}
	return faults
}
