package ddbmodel

import "slices"

// Reading is a Query or Scan request.
type Reading struct {
	Table string
	Index string // "" for the table
	// Hash is the partition that a Query reads. It is unset for a Scan.
	Hash  Value
	Range *RangeCondition // the range that a Query reads; nil for all
	// Backward makes a Query read in descending order.
	Backward   bool
	Filter     Condition
	Projection []Path
	Select     string
}

// RangeCondition is a key condition on the sort key.
type RangeCondition struct {
	Op   string // =, <, <=, >, >=, BETWEEN or begins_with
	A, B Value  // B is the upper bound of BETWEEN
}

// Holds reports whether a sort key satisfies the condition.
func (c *RangeCondition) Holds(v Value) bool {
	at := Attribute("k")
	item := Item{"k": v}
	switch c.Op {
	case "BETWEEN":
		return Between{Read{at}, Literal{c.A}, Literal{c.B}}.holds(item)
	case "begins_with":
		return BeginsWith{at, Literal{c.A}}.holds(item)
	}
	return compare(c.Op, v, c.A)
}

// IsQuery reports whether the reading is a Query rather than a Scan.
func (r Reading) IsQuery() bool { return r.Hash.isPresent() }

// Name returns DynamoDB's name for the operation.
func (r Reading) Name() string {
	if r.IsQuery() {
		return "Query"
	}
	return "Scan"
}

// Request returns the members of the request for the first page.
func (r Reading) Request(db *DB) map[string]any {
	request := map[string]any{"TableName": r.Table}
	if r.Index != "" {
		request["IndexName"] = r.Index
	}
	if r.Select != "" {
		request["Select"] = r.Select
	}
	var p Placeholders
	if r.IsQuery() {
		key := r.key(db)
		text := p.name(key[0].Name) + " = " + p.value(r.Hash)
		if c := r.Range; c != nil {
			name := p.name(key[1].Name)
			switch c.Op {
			case "BETWEEN":
				text += " AND " + name + " BETWEEN " + p.value(c.A) + " AND " + p.value(c.B)
			case "begins_with":
				text += " AND begins_with(" + name + ", " + p.value(c.A) + ")"
			default:
				text += " AND " + name + " " + c.Op + " " + p.value(c.A)
			}
		}
		request["KeyConditionExpression"] = text
		if r.Backward {
			request["ScanIndexForward"] = false
		}
	}
	if r.Filter != nil {
		request["FilterExpression"] = r.Filter.text(&p)
	}
	if r.Projection != nil {
		request["ProjectionExpression"] = p.paths(r.Projection)
	}
	p.into(request)
	return request
}

// key returns the key schema of the reading.
func (r Reading) key(db *DB) []KeyAttribute {
	t := db.tables[r.Table]
	if r.Index != "" {
		return t.Index(r.Index).Key
	}
	return t.Key
}

// Result holds the items of all pages of a reading.
type Result struct {
	// Groups holds the items in the order of the sort key. The items of one group may come in any
	// order. A Scan has one group.
	Groups [][]Item
	// Scanned counts the items before the filter.
	Scanned int
}

// Read returns the result of a reading. If after is not nil, it returns the result of a Query of a
// table that starts after that key.
func (db *DB) Read(r Reading, after Item) Result {
	t := db.tables[r.Table]
	found := slices.Clone(t.items)
	if r.Index != "" {
		found = t.Entries(t.Index(r.Index))
	}
	sign := func(Item, Item) int { return 0 }
	if key := r.key(db); r.IsQuery() {
		found = slices.DeleteFunc(found, func(item Item) bool {
			return !equal(item[key[0].Name], r.Hash) || r.Range != nil && !r.Range.Holds(item[key[1].Name])
		})
		if len(key) > 1 {
			sign = func(a, b Item) int {
				n, _ := order(a[key[1].Name], b[key[1].Name])
				if r.Backward {
					return -n
				}
				return n
			}
		}
		slices.SortStableFunc(found, sign)
		if after != nil {
			found = slices.DeleteFunc(found, func(item Item) bool { return sign(item, after) <= 0 })
		}
	}
	out := Result{Scanned: len(found)}
	var last Item
	for _, entry := range found {
		if last == nil || sign(last, entry) != 0 {
			out.Groups = append(out.Groups, nil)
		}
		last = entry
		// A request that names an attribute outside a local index reads it from the table;
		// otherwise it gets the projected attributes.
		item, whole := entry, entry
		if r.Index != "" && !t.Index(r.Index).Global {
			whole = t.Find(entry)
		}
		if r.Filter != nil && !r.Filter.holds(whole) {
			continue
		}
		switch {
		case r.Projection != nil:
			item = project(whole, r.Projection)
		case r.Select == "ALL_ATTRIBUTES":
			item = whole
		}
		group := &out.Groups[len(out.Groups)-1]
		*group = append(*group, item)
	}
	return out
}
