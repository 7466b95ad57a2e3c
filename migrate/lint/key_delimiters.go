package lint

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
)

func delimiterInSegment(c *check) {
	met := map[[2]string]*worst{} // by the rule of the item and the other rule
	var pairs [][2]string
	c.onItem = func(x *item) {
		if x.placed == nil || x.layout == nil || c.t.Mapping == nil {
			return
		}
		other, key, ok := c.t.Mapping.Stray(x.placed.Rule, x.placed.Key)
		if !ok {
			return
		}
		pair := [2]string{x.placed.Rule, other}
		if met[pair] == nil {
			met[pair] = &worst{}
			pairs = append(pairs, pair)
		}
		met[pair].add(0, func() Finding {
			f := Finding{Item: c.t.keyText(x.Item), Row: rowText(x.placed.Key), Message: fmt.Sprintf("an item of rule %s shares its row with item %s, of rule %s", pair[0], c.t.keyText(key), other), Expected: "rows of one rule alone"}
			c.atRow(&f, x.layout, len(x.layout.rule.Row)-1)
			return f
		})
	}
	c.onEnd = func() {
		for _, pair := range pairs {
			met[pair].report(c)
		}
		if r := c.t.refused[maperr.CodeDelim]; r != nil {
			c.refusal(r, "no delimiter, and no byte below it, in a segment that is not the last")
		}
	}
}

func orderedNumberDelimiter(c *check) {
	c.onEnd = func() {
		if c.t.Spec == nil {
			return
		}
		delimiter := ""
		if arg, ok := strings.CutPrefix(c.t.Spec.Target.Joiner, "plain('"); ok {
			delimiter, _ = strings.CutSuffix(arg, "')")
		}
		if delimiter < "0" {
			return
		}
		for i, rule := range c.t.Spec.Rules {
			for j, segment := range rule.Row[:max(len(rule.Row)-1, 0)] {
				if !c.t.usesOrderedNumber(segment) {
					continue
				}
				f := Finding{Message: fmt.Sprintf("segment %s is a number in order, and %q follows it", segment, delimiter), Expected: "a delimiter below '0', such as '#'"}
				c.at(&f, fmt.Sprintf("rules[%d].row[%d]", i, j))
				c.report(f)
			}
		}
	}
}

// usesOrderedNumber reports whether a segment is encoded by nord, the default for a key
// attribute of type N.
func (t *tablePass) usesOrderedNumber(segment string) bool {
	if strings.Contains(segment, ":nord}") {
		return true
	}
	for _, k := range t.Key.Attrs() {
		if k.Type == attr.N && strings.Contains(segment, "{"+k.Name+"}") {
			return true
		}
	}
	return false
}
