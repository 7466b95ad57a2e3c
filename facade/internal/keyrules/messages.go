package keyrules

import "github.com/tabletop-emu/tabletop/facade/internal/wire"

// The texts about keys. The number behind a text is its row in
// facade/testdata/messages.tsv; package facade has those with a capital too.
const (
	MsgKeyMismatch      = "The provided key element does not match the schema"                                                                                                                                                             // 64
	msgKeyMissing       = wire.MsgInvalidParameterPrefix + "Missing the key %s in the item"                                                                                                                                                // 65
	msgKeyType          = wire.MsgInvalidParameterPrefix + "Type mismatch for key %s expected: %s actual: %s"                                                                                                                              // 66
	MsgIndexKeyType     = wire.MsgInvalidParameterPrefix + "Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s"                                                                                                          // 67
	MsgKeyEmpty         = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s"                                                                                   // 68
	msgIndexKeyEmpty    = "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s" // 69
	MsgHashTooLarge     = wire.MsgInvalidParameterPrefix + "Size of hashkey has exceeded the maximum size limit of2048 bytes"                                                                                                              // 71, sic
	MsgRangeTooLarge    = wire.MsgInvalidParameterPrefix + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"                                                                                                   // 72
	msgPathIntoKey      = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: %s"                                                                                                            // 74
	msgPathIntoIndexKey = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: IndexKey: %s"                                                                                                       // 74b
	msgIndexKeyTooLarge = wire.MsgInvalidParameterPrefix + "Size of secondary index key %s has exceeded the size limit of %d bytes. IndexName: %s"                                                                                         // 231
)
