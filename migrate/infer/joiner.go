package infer

import (
	"context"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// joiner chooses between the plain and the escaped joiner, based on all keys in the data.
func (in *Inferred) joiner(ctx context.Context, t *source.Table, open *layout.Mapping, o Options) (*layout.Mapping, error) {
	proof := open.ProveJoiner()
	n := int64(0)
	for e, err := range entriesOf(ctx, t, o) {
		if err != nil {
			return nil, err
		}
		if err := proof.Add(e.Item); err != nil {
			return nil, source.Refused(e.Position, err, "the mapping cannot hold the item")
		}
		n++
	}
	in.Choices = append(in.Choices, JoinerChoice(proof, n))
	return open.WithJoiner(proof.Joiner())
}

// JoinerChoice describes the choice of a joiner for a report, given the keys of n items.
func JoinerChoice(proof *layout.JoinerProof, n int64) Choice {
	c := Choice{What: "joiner", Chosen: proof.Joiner(), Why: "no key has the delimiter, or a byte below it, before its last segment"}
	if n > 1 {
		c.Why = fmt.Sprintf("none of the %d keys has the delimiter, or a byte below it, before its last segment", n)
	}
	bad := proof.Offender()
	switch {
	case proof.Apart():
		c.Why = "rules have different numbers of segments, and a delimiter in the last segment of one would make rows of another"
		if bad != nil {
			c.Why += "; such keys exist: " + delimiterIn(bad)
		}
	case bad != nil:
		c.Why = "plain('#') would confuse keys: " + delimiterIn(bad)
	}
	return c
}

// delimiterIn describes a key that contains the delimiter, and the delimiter's position.
func delimiterIn(bad *maperr.Error) string {
	return fmt.Sprintf("of item %s, %s", attr.AppendItemJSON(nil, bad.Key), bad.What)
}
