package attr

// StringSet returns a value of type SS. The error is an *Error: EmptySet or
// DuplicateMember.
func StringSet(members ...string) (Value, error) { panic("x") }

// NumberSet returns a value of type NS from any number texts that DynamoDB
// accepts. The error is an *Error: EmptySet, DuplicateMember or one of
// ParseNumber.
func NumberSet(members ...string) (Value, error) { panic("x") }

// BinarySet returns a value of type BS, as StringSet.
func BinarySet(members ...[]byte) (Value, error) { panic("x") }

// SetOf returns a set of the given type from members that are canonical
// already (numbers in canonical text, binaries as raw bytes), in any order,
// duplicates dropped: the union. It is absent where there are no members.
func SetOf(t Type, members ...string) Value { panic("x") }
