package report

import "github.com/tabletop-emu/tabletop/internal/extsort"

// failedItems are the items that failed before their rows were compared. The zero value is
// empty.
type failedItems struct {
	items   map[extsort.Hash]bool // by Bigtable table and key
	unruled map[string]bool       // Bigtable tables with items that no rule takes
}

// maxFailedItems bounds the remembered items; consequences of others are listed.
const maxFailedItems = 100_000

// ItemFailed records that an item of a Bigtable table has failed. Later failures of the
// same item are not listed.
func (r *Report) ItemFailed(table, key string) { r.failed.add(table, key) }

// ItemUnmatched records that an item of a Bigtable table has failed because no rule matches
// it. The caller has already recorded the item with ItemFailed.
func (r *Report) ItemUnmatched(table string) { r.failed.unruled[table] = true }

// ItemsFailed reports whether any item has failed.
func (r *Report) ItemsFailed() bool { return len(r.failed.items) > 0 }

// HasFailed reports whether an item of a Bigtable table has failed.
func (r *Report) HasFailed(table, key string) bool { return r.failed.has(table, key) }

func (s *failedItems) has(table, key string) bool {
	return s.items[extsort.HashOf([]byte(table), []byte(key))]
}

func (s *failedItems) add(table, key string) {
	if s.items == nil {
		s.items, s.unruled = map[extsort.Hash]bool{}, map[string]bool{}
	}
	if len(s.items) < maxFailedItems {
		s.items[extsort.HashOf([]byte(table), []byte(key))] = true
	}
}

// explain reports whether a difference is only a consequence of a failed item: it is about the
// item, or about a row without a rule while there are items without a rule.
func (s *failedItems) explain(f Failure) bool {
	switch f.Kind { //nolint:exhaustive // these are of items as they come, or of many of which one is the example
	case Unmatched, ItemRefused, KeyCollision, LimitExceeded, DuplicateItem, NotLoaded, LossNotAccepted, LintError:
		return false
	}
	if f.ItemKey == "" {
		return f.RowKey != "" && s.unruled[f.Table]
	}
	return s.has(f.Table, f.ItemKey)
}
