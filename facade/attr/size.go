package attr

// Size returns the bytes that v counts for against DynamoDB's item limit.
func (v Value) Size() int { panic("x") }

// Size returns the bytes of the item as DynamoDB counts them: names in UTF-8
// and values.
func (i Item) Size() int { panic("x") }
