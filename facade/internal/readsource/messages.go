package readsource

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	MsgStartKeyInvalid = "The provided starting key is invalid: %s" // 139
	msgStartKeyShape   = "The provided starting key is invalid"     // 139b
)
