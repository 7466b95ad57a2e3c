package source

// MaxHeldBytes bounds the items that stay decoded after the first pass, measured as JSON
// text. Decoded, they take five to ten times as much memory. A larger source is read and
// decoded again in each pass.
const MaxHeldBytes = 20 << 20

// Held returns the table with a cache. After the first complete pass without an error,
// the entries come from memory if they fit in the rest of budget. Several tables may
// share a budget. The caller must not modify the items.
func (t *Table) Held(budget *int) *Table {
	var entries []Entry
	whole, over := false, false
	read := t.entries
	with := *t
	with.entries = func(yield func(Entry, error) bool) {
		if whole {
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			return
		}
		var seen []Entry
		bytes, complete := 0, true
		read(func(e Entry, err error) bool {
			if err != nil {
				complete = false
				return yield(e, err)
			}
			if !over {
				if bytes += len(e.Text); bytes > *budget {
					over, seen = true, nil
				} else {
					seen = append(seen, Entry{Item: e.Item, Position: e.Position})
				}
			}
			if !yield(e, nil) {
				complete = false
				return false
			}
			return true
		})
		if complete && !over {
			whole, entries = true, seen
			*budget -= bytes
		}
	}
	return &with
}
