package layout

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// closure adds to known, a set of variables, all variables that they determine. It returns known.
func (r *rule) closure(known map[int]bool) map[int]bool {
	for n := -1; n != len(known); {
		n = len(known)
		if r.same && (known[rowkey.SlotHash] || known[rowkey.SlotRange]) {
			known[rowkey.SlotHash], known[rowkey.SlotRange] = true, true
		}
		for slot, t := range r.when {
			if t == nil {
				continue
			}
			all := true
			for _, s := range t.Slots() {
				if known[slot] {
					known[s] = true
				}
				all = all && known[s]
			}
			if all {
				known[slot] = true
			}
		}
	}
	return known
}

func (r *rule) knowsKey(known map[int]bool) bool {
	return known[rowkey.SlotHash] && (r.keys == 1 || known[rowkey.SlotRange])
}

// invert checks that each cell determines the key, and sets identity: the variables that, with
// the row, determine the key.
func (c *compiler) invert(r *rule, path string) {
	for name := range r.timeAttrs {
		if r.byAttr[name] != nil {
			c.fail(path+".put", maperr.CodeInverse, fmt.Sprintf("attribute %q has a cell and is also a timestamp", name), "one of them")
		}
	}
	if !c.sound(func() { c.keptKeys(r) }) {
		return
	}
	row := maps.Clone(r.rowSlots)
	for slot := range r.stored {
		row[slot] = true
	}
	timed := c.sound(func() {
		for i, p := range r.puts {
			c.invertTimeKey(r, p, c.spec.Rules[r.index].Put[i].Time.As, row)
		}
	})
	if !timed {
		return
	}
	known := r.closure(maps.Clone(row))
	for slot := range r.keys {
		if known[slot] {
			continue
		}
		add := []int{slot}
		if r.when[slot] != nil {
			add = r.when[slot].Slots()
		}
		for _, s := range add {
			if !known[s] {
				r.identity = append(r.identity, s)
				known[s] = true
			}
		}
		known = r.closure(known)
	}
	for _, p := range r.puts {
		cell := p.withQualifier(row)
		if r.knowsKey(r.closure(maps.Clone(cell))) {
			continue
		}
		p.byTime = p.timeSlot != rowkey.SlotNone
		if p.byTime {
			cell[p.timeSlot] = true
		}
		known := r.closure(cell)
		if c.spec.Collision == mapfile.CollisionQualifier && !r.knowsKey(known) {
			known = c.qualify(r, p, known)
		}
		for slot, a := range c.l.key.Attrs() {
			if !known[slot] {
				c.fail(p.path+".cell", maperr.CodeInverse, fmt.Sprintf("key attribute %q cannot be restored from row, qualifier and timestamp", a.Name), "a reference to it, or to the captures of its template")
			}
		}
		if p.byTime && p.codec.Paths {
			c.fail(p.path+".codec", maperr.CodeInverse, "leaves of maps would be in cells that differ only in their timestamps", "codec ddbjson")
		}
		if p.byTime && r.tag {
			c.fail(path+".tag", maperr.CodeInverse, "a tag cannot distinguish items by time", "no tag, or a column for each item")
		}
	}
}

// invertTimeKey checks a key attribute that is the timestamp of p's cells (ts.attr). If neither
// row nor qualifier determines it, it adds a capture for it, and the timestamp of the cells
// becomes that of the capture.
func (c *compiler) invertTimeKey(r *rule, p *put, as string, row map[int]bool) {
	if !p.timeKey {
		return
	}
	slot := slices.IndexFunc(c.l.key.Attrs(), func(a attr.KeyAttr) bool { return a.Name == p.timeAttr })
	if r.closure(p.withQualifier(row))[slot] {
		return
	}
	e, err := rowkey.ParseEncoder(as, attr.Absent)
	if err != nil {
		c.fail(p.path+".ts", maperr.CodeSyntax, err.Error(), "")
		return
	}
	i := slices.IndexFunc(r.captures, func(k capture) bool { return k.alone && k.name == p.timeAttr })
	switch {
	case i >= 0 && r.captures[i].enc.Name != e.Name:
		c.fail(p.path+".ts", maperr.CodeInverse, fmt.Sprintf("%q is %s here, but %s in an earlier put", p.timeAttr, as, r.captures[i].enc.Name), "the same form in all puts")
		return
	case i < 0 && r.when[slot] != nil:
		return // the captures of its template must be known
	case i < 0:
		i = len(r.captures)
		r.captures = append(r.captures, capture{name: p.timeAttr, enc: e, alone: true})
		r.when[slot] = &rowkey.Template{Src: "{" + p.timeAttr + ":" + as + "}", Parts: []rowkey.Part{{Slot: rowkey.FirstCapture + i, Enc: e}}}
	}
	p.timeSlot, p.timeAttr, p.timeKey = rowkey.FirstCapture+i, "", false
}

// qualify adds to the qualifier of a put the variables that distinguish items on the same cell.
// It returns known with these variables.
func (c *compiler) qualify(r *rule, p *put, known map[int]bool) map[int]bool {
	var add []rowkey.Part
	for slot, a := range c.l.key.Attrs() {
		if known[slot] {
			continue
		}
		slots := []int{slot}
		if r.when[slot] != nil {
			slots = r.when[slot].Slots()
		}
		for _, s := range slots {
			if known[s] {
				continue
			}
			name := a.Name
			if s >= rowkey.FirstCapture {
				name = r.captures[s-rowkey.FirstCapture].name
			}
			_, enc, err := c.reference(r, name, "")
			if err != nil {
				c.fail(p.path+".cell", maperr.CodeSyntax, err.Error(), "")
				return known
			}
			add = append(add, rowkey.Part{Slot: s, Enc: enc})
			known[s] = true
		}
		known = r.closure(known)
	}
	t := &rowkey.Template{Src: p.qual.Src}
	parts := p.qual.Parts
	var last []rowkey.Part // {attr}, {member} or {key}
	if n := len(parts); n > 0 && parts[n-1].Lit == nil && parts[n-1].Slot < rowkey.SlotNone {
		parts, last = parts[:n-1], parts[n-1:]
	}
	t.Parts = slices.Clone(parts)
	between := rowkey.Part{Lit: []byte{'#'}, Slot: rowkey.SlotNone}
	for _, a := range append(add, last...) {
		if len(t.Parts) > 0 {
			t.Parts = append(t.Parts, between)
		}
		t.Parts = append(t.Parts, a)
	}
	p.qual = t
	return known
}
