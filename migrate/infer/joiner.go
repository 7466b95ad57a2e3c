package infer

import (
	"context"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// joiner lets all keys of the data decide between the plain joiner and the
// escaped one.
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

// JoinerChoice says what the keys of n items decided.
func JoinerChoice(proof *layout.JoinerProof, n int64) Choice {
	c := Choice{What: "joiner", Chosen: proof.Joiner(), Why: "no key holds the delimiter, or a byte below it, before its last segment"}
	if n > 1 {
		c.Why = fmt.Sprintf("none of the %d keys holds the delimiter, or a byte below it, before its last segment", n)
	}
	bad := proof.Offender()
	switch {
	case proof.Apart():
		c.Why = "rules have different numbers of segments, and a delimiter in the last segment of one would make rows of another"
		if bad != nil {
			c.Why += "; there are such keys: " + delimiterIn(bad)
		}
	case bad != nil:
		c.Why = "plain('#') could not tell keys apart: " + delimiterIn(bad)
	}
	return c
}

// delimiterIn says which key has the delimiter, and where.
func delimiterIn(bad *lens.Error) string {
	return fmt.Sprintf("of item %s, %s", attr.AppendItemJSON(nil, bad.Key), bad.What)
}
