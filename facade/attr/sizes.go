package attr

// Sizes are the bytes that an item counts for.
type Sizes struct {
	// Item is the size by Item.Size: the size for the item limit and for
	// consumed capacity.
	Item int

	stored int // as pages count names and values
}

// Of what a page counts for an item. Nothing is documented: every recording of pages
// near 1 MB, in the tests of dynalite 3.2.1, is explained to the byte by it.
const (
	pageItemBytes  = 2     // an item
	pageNameBytes  = 1     // a name, however long
	pageBlockBytes = 3_072 // of an item, after each of which there is
	pageBlockHead  = 18    // this, and the sort key again
)

// Sizes returns the sizes of the item.
func (i Item) Sizes() Sizes {
	var s Sizes
	for name, v := range i {
		s.add(len(name), v.Size(), v.Type, len(v.Set))
	}
	return s
}

// add adds an attribute with a value of a size, which has so many members if it is a
// set.
func (s *Sizes) add(nameBytes, size int, t Type, members int) {
	s.Item += nameBytes + size
	s.stored += storedBytes(size, t, members)
}

// storedBytes is what a page counts for an attribute. That binaries have the length of
// strings, and that documents count as documented, is (belief).
func storedBytes(size int, t Type, members int) int {
	bytes := pageNameBytes + size
	switch t {
	case S, B: // the length before it has 7 bits a byte
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

// OnPage returns the bytes that the item counts for in a page of 1 MB, where its sort
// key has the given values; absent values do not count.
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
