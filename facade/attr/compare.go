package attr

// Equal reports whether a and b are the same value: numbers by value, sets
// without order.
func Equal(a, b Value) bool { panic("x") }

// EqualItems reports whether a and b have the same attributes. No item (nil)
// equals only no item.
func EqualItems(a, b Item) bool { panic("x") }

// Compare orders two values of one type S, N or B: strings by UTF-8 bytes,
// numbers by value, binaries by unsigned bytes. Other operands have no order:
// ok is false.
func Compare(a, b Value) (c int, ok bool) { panic("x") }
