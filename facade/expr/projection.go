package expr

import "github.com/tabletop-emu/tabletop/facade/attr"

// Projection is a set of document paths, usually from a projection expression. It is
// immutable.
type Projection struct {
	paths []Path
	root  *selection
}

// selection is the selected parts of a value, as a tree of paths.
type selection struct {
	whole    bool // the whole value is selected
	members  map[string]*selection
	elements map[int]*selection
}

// ParseProjection parses a projection expression. Errors are of type *Error. After
// parsing, it checks, in DynamoDB's order, for reserved words, undefined placeholders,
// overlapping paths and conflicting paths.
func ParseProjection(src string, p *Placeholders) (*Projection, error) {
	ps, err := newParser(ProjectionExpression, src, projectionKeywords, p)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := ps.path(); err != nil {
			return nil, err
		}
		if !ps.accept(",") {
			break
		}
	}
	if ps.peek().kind != tokEnd {
		return nil, ps.unexpected()
	}
	if err := ps.checkReserved(); err != nil {
		return nil, err
	}
	if ps.pathError != nil {
		return nil, ps.pathError
	}
	for _, o := range ps.operands {
		if err := ps.resolve(o, true, true); err != nil {
			return nil, err
		}
	}
	paths := ps.paths()
	if err := checkPaths(ProjectionExpression, paths); err != nil {
		return nil, err
	}
	return ProjectionOf(paths...), nil
}

// ProjectionOf returns the projection to paths. If paths overlap, the shortest one
// applies.
func ProjectionOf(paths ...Path) *Projection {
	p := &Projection{paths: paths, root: &selection{}}
	for _, path := range paths {
		s := p.root
		for _, step := range path {
			if s.whole {
				break
			}
			s = s.child(step)
		}
		*s = selection{whole: true}
	}
	return p
}

// child returns the selection to which step leads, and adds it if it is missing.
func (s *selection) child(step Step) *selection {
	var c *selection
	if step.IsIndex {
		if c = s.elements[step.Index]; c == nil {
			if s.elements == nil {
				s.elements = map[int]*selection{}
			}
			c = &selection{}
			s.elements[step.Index] = c
		}
		return c
	}
	if c = s.members[step.Name]; c == nil {
		if s.members == nil {
			s.members = map[string]*selection{}
		}
		c = &selection{}
		s.members[step.Name] = c
	}
	return c
}

// Paths returns the paths in textual order.
func (p *Projection) Paths() []Path { return p.paths }

// Apply returns the part of item that the paths select. Selected list elements keep their
// order, without gaps. If nothing matches, the result is empty, not nil; for a nil item
// it is nil.
func (p *Projection) Apply(item attr.Item) attr.Item {
	if item == nil {
		return nil
	}
	return p.root.selectMembers(item)
}

func (s *selection) selectMembers(m map[string]attr.Value) map[string]attr.Value {
	kept := make(map[string]attr.Value, len(s.members))
	for name, c := range s.members {
		if v := c.selectFrom(m[name]); present(v) {
			kept[name] = v
		}
	}
	return kept
}

// selectFrom returns the selected part of v, or an absent value.
func (s *selection) selectFrom(v attr.Value) attr.Value {
	switch {
	case s.whole:
		return v
	case v.Type == attr.M && len(s.members) > 0:
		if kept := s.selectMembers(v.Map); len(kept) > 0 {
			return attr.MapOf(kept)
		}
	case v.Type == attr.L:
		var kept []attr.Value
		for _, i := range sortedKeys(s.elements) {
			if i >= len(v.List) {
				break
			}
			if e := s.elements[i].selectFrom(v.List[i]); present(e) {
				kept = append(kept, e)
			}
		}
		if len(kept) > 0 {
			return attr.ListOf(kept...)
		}
	}
	return attr.Value{}
}
