package awserr

// Error texts for items and keys. Package attr has the texts for attribute values.
const (
	MsgItemTooLarge        = "Item size has exceeded the maximum allowed size"                                                                                                                                                                // row 62
	MsgUpdatedItemTooLarge = "Item size to update has exceeded the maximum allowed size"                                                                                                                                                      // row 63
	MsgKeyMismatch         = "The provided key element does not match the schema"                                                                                                                                                             // row 64
	MsgKeyMissing          = MsgInvalidParameterPrefix + "Missing the key %s in the item"                                                                                                                                                     // row 65
	MsgKeyType             = MsgInvalidParameterPrefix + "Type mismatch for key %s expected: %s actual: %s"                                                                                                                                   // row 66
	MsgIndexKeyType        = MsgInvalidParameterPrefix + "Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s"                                                                                                               // row 67
	MsgKeyEmpty            = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s"                                                                                   // row 68
	MsgIndexKeyEmpty       = "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s" // row 69
	MsgHashTooLarge        = MsgInvalidParameterPrefix + "Size of hashkey has exceeded the maximum size limit of2048 bytes"                                                                                                                   // row 71, sic
	MsgRangeTooLarge       = MsgInvalidParameterPrefix + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"                                                                                                        // row 72
	MsgIndexKeyTooLarge    = MsgInvalidParameterPrefix + "Size of secondary index key %s has exceeded the size limit of %d bytes. IndexName: %s"                                                                                              // row 231
	MsgPathIntoKey         = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: %s"                                                                                                            // row 74
	MsgPathIntoIndexKey    = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: IndexKey: %s"                                                                                                       // row 74b
)

// Error texts for conditions and updates.
const (
	MsgConditionFailed     = "The conditional request failed"                                                                                                                                                                                         // row 97
	MsgUpdateStoredType    = "Type mismatch for attribute to update"                                                                                                                                                                                  // row 96
	MsgUpdateKey           = "One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key"                                                                                                               // row 73
	MsgUpdateIndexKeyType  = "The update expression attempted to update the secondary index key to unsupported type"                                                                                                                                  // row 70b
	MsgUpdateIndexKeyEmpty = "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty %s value." // row 70
)
