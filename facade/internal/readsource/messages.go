package readsource

import "github.com/tabletop-emu/tabletop/facade/internal/wire"

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	MsgStartKeyInvalid = "The provided starting key is invalid: %s" // 139
	msgStartKeyShape   = "The provided starting key is invalid"     // 139b

	// MsgFilterNotProjected is of PartiQL alone, and of indexes of either kind.
	MsgFilterNotProjected = wire.MsgInvalidParameterPrefix + "Secondary index %s does not project one or more filter attributes: [%s]" // 471
)
