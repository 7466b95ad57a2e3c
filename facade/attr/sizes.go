package attr

// Sizes holds the sizes of an item by different rules.
type Sizes struct {
	// Item is the result of Item.Size. It counts toward the item size limit and consumed
	// capacity.
	Item int

	stored int // bytes of the names and values on a page, without the rest of OnPage
}

// These are the bytes that a page counts for an item besides its values. The rule is not
// documented, but it explains every recording of pages near 1 MB in the tests of dynalite 3.2.1
// to the byte.
const (
	pageItemBytes  = 2     // for each item
	pageNameBytes  = 1     // for each name, of any length
	pageBlockBytes = 3_072 // size of the blocks of an item
	pageBlockHead  = 18    // for each block, in addition to the sort key
)

// Sizes returns the sizes of the item by all rules.
func (i Item) Sizes() Sizes {
	var s Sizes
	for name, v := range i {
		s.add(len(name), v.Size(), v.Type, len(v.Set))
	}
	return s
}

// add adds an attribute of type t with a name of nameBytes bytes and a value of the given size.
// members is the number of members of a set.
func (s *Sizes) add(nameBytes, size int, t Type, members int) {
	s.Item += nameBytes + size
	s.stored += storedBytes(size, t, members)
}

// storedBytes returns the number of bytes that a page counts for an attribute of type t with a
// value of the given size. It treats binaries like strings, and counts lists and maps by their
// documented size; both are assumptions.
func storedBytes(size int, t Type, members int) int {
	bytes := pageNameBytes + size
	switch t {
	case S, B: // plus a length prefix with 7 bits per byte
		for n := size; ; n >>= 7 {
			if bytes++; n < 1<<7 {
				return bytes
			}
		}
	case N:
		return bytes + 1
	case SS, NS, BS:
		return bytes + 1 + members
	case Absent, BOOL, NULL, L, M:
	}
	return bytes
}

// OnPage returns the number of bytes that the item counts toward the 1 MB limit of a
// page. sortKey holds the values of its sort key; absent ones do not count.
func (s Sizes) OnPage(sortKey ...Value) int {
	stored, sortKeyBytes := s.stored, 0
	for _, v := range sortKey {
		if v.Type != Absent {
			size := v.Size()
			stored -= storedBytes(size, v.Type, 0)
			sortKeyBytes += size
		}
	}
	blocks := 1 + (1+stored)/pageBlockBytes
	return pageItemBytes + stored + blocks*(pageBlockHead+sortKeyBytes)
}
