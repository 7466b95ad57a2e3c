package partiql

import "strings"

// selected parses the rest of a SELECT.
func (p *parser) selected() (*Statement, error) {
	st := &Statement{Kind: Select}
	for _, word := range []string{"distinct", "value", "all"} {
		if t := p.peek(); p.accept(word) && word != "all" {
			st.unsupported(t)
		}
	}
	if !p.accept("*") {
		p.inColumns++
		err := p.columnsOf(st)
		p.inColumns--
		if err != nil {
			return nil, err
		}
	} else {
		st.all = true
	}
	if err := p.expect("from", "FROM"); err != nil {
		return nil, err
	}
	var err error
	if st.source, err = p.sourceOf(st); err != nil {
		return nil, err
	}
	for {
		switch t := p.peek(); {
		case p.accept(","), p.accept("join"):
		case t.is("inner"), t.is("left"), t.is("right"), t.is("full"), t.is("cross"), t.is("outer"):
			p.next++
			continue
		default:
			return st, p.clauses(st)
		}
		st.joined = true
		if _, err := p.sourceOf(&Statement{}); err != nil {
			return nil, err
		}
		if p.accept("on") {
			if _, err := p.expression(0); err != nil {
				return nil, err
			}
		}
	}
}

func (st *Statement) unsupported(t token) {
	if st.clause == "" {
		st.clause, st.clausePos = strings.ToUpper(t.text), t.pos
	}
}

func (p *parser) columnsOf(st *Statement) error {
	for {
		column, err := p.expression(0)
		if err != nil {
			return err
		}
		st.columns = append(st.columns, column)
		p.alias(st)
		if !p.accept(",") {
			return nil
		}
	}
}

// alias skips an alias, if any, and sets st.alias.
func (p *parser) alias(st *Statement) {
	as := p.accept("as")
	if t := p.peek(); t.kind == tokName || t.kind == tokQuoted {
		p.next++
		as = true
	}
	st.alias = st.alias || as
}

func (p *parser) sourceOf(st *Statement) (*node, error) {
	n, err := p.expression(0)
	if err == nil {
		p.alias(st)
	}
	return n, err
}

// clauses parses the clauses after the source of a SELECT.
func (p *parser) clauses(st *Statement) (err error) {
	if p.accept("where") {
		if st.where, err = p.expression(0); err != nil {
			return err
		}
	}
	for _, word := range []string{"group by", "having"} {
		if t := p.peek(); p.accept(word) {
			st.unsupported(t)
			if _, err := p.expression(0); err != nil {
				return err
			}
			for p.accept(",") {
				if _, err := p.expression(0); err != nil {
					return err
				}
			}
		}
	}
	if p.accept("order by") {
		for {
			term := orderTerm{}
			if term.by, err = p.expression(0); err != nil {
				return err
			}
			if p.accept("desc") {
				term.descending = true
			} else {
				p.accept("asc")
			}
			if t := p.peek(); t.kind == tokName && strings.EqualFold(t.text, "nulls") {
				p.next++
				if !p.accept("first") && !p.accept("last") {
					return malformed(msgKeyword)
				}
			}
			st.order = append(st.order, term)
			if !p.accept(",") {
				break
			}
		}
	}
	if t := p.peek(); p.accept("limit") {
		st.unsupported(t)
		_, err = p.expression(0)
	}
	return err
}

// simplePath parses the table, and perhaps the index, of a statement that writes.
func (p *parser) simplePath(st *Statement) (err error) {
	t := p.peek()
	if t.kind != tokName && t.kind != tokQuoted {
		return malformed(msgSimplePath)
	}
	p.next++
	st.source, err = p.path(&node{form: formName, text: t.text, pos: t.pos, quoted: t.kind == tokQuoted})
	return err
}

func (p *parser) insert() (*Statement, error) {
	st := &Statement{Kind: Insert}
	if err := p.simplePath(st); err != nil {
		return nil, err
	}
	if !p.accept("value") && !p.accept("values") {
		return nil, malformed(msgLeftover)
	}
	var err error
	st.inserted, err = p.expression(0)
	return st, err
}

func (p *parser) update() (*Statement, error) {
	st := &Statement{Kind: Update}
	if err := p.simplePath(st); err != nil {
		return nil, err
	}
	p.alias(st)
	if err := p.changes(st); err != nil {
		return nil, err
	}
	if p.accept("where") {
		var err error
		if st.where, err = p.expression(0); err != nil {
			return nil, err
		}
	}
	return st, p.returningOf(st)
}

func (p *parser) fromUpdate() (*Statement, error) {
	st := &Statement{Kind: Update}
	var err error
	if st.source, err = p.sourceOf(st); err != nil {
		return nil, err
	}
	if p.accept("where") {
		if st.where, err = p.expression(0); err != nil {
			return nil, err
		}
	}
	if err := p.changes(st); err != nil {
		return nil, err
	}
	return st, p.returningOf(st)
}

// changes parses the clauses SET and REMOVE.
func (p *parser) changes(st *Statement) error {
	for {
		switch {
		case p.accept("set"):
			for {
				c := change{}
				var err error
				if c.target, err = p.target(); err != nil {
					return err
				}
				if err := p.expect("=", "EQ"); err != nil {
					return err
				}
				if c.value, err = p.expression(0); err != nil {
					return err
				}
				st.changes = append(st.changes, c)
				if !p.accept(",") {
					break
				}
			}
		case p.accept("remove"):
			target, err := p.target()
			if err != nil {
				return err
			}
			st.changes = append(st.changes, change{remove: true, target: target})
		case len(st.changes) == 0:
			return malformed(msgManipulation)
		default:
			return nil
		}
	}
}

func (p *parser) target() (*node, error) {
	n, err := p.term()
	if err != nil {
		return nil, err
	}
	if n, err = p.path(n); err != nil {
		return nil, err
	}
	if n.form != formName && n.form != formPath {
		return nil, malformed(msgSimplePath)
	}
	return n, nil
}

func (p *parser) deleted() (*Statement, error) {
	st := &Statement{Kind: Delete}
	if !p.accept("from") {
		return nil, malformed(msgFromOfDelete)
	}
	if err := p.simplePath(st); err != nil {
		return nil, err
	}
	p.alias(st)
	if p.accept("where") {
		var err error
		if st.where, err = p.expression(0); err != nil {
			return nil, err
		}
	}
	return st, p.returningOf(st)
}

// returningOf parses RETURNING.
func (p *parser) returningOf(st *Statement) error {
	if !p.accept("returning") {
		return nil
	}
	mode, state := strings.ToUpper(p.take().text), strings.ToUpper(p.take().text)
	if mode != "ALL" && mode != "MODIFIED" || state != "OLD" && state != "NEW" {
		return malformed(msgKeyword)
	}
	st.returning = mode + " " + state
	return p.expect("*", "ASTERISK")
}
