package validation

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	msgMemberNotNull         = "Member must not be null"                                                                                                                                                                                            // part of 1
	msgParameterRequired     = "The parameter '%s' is required but was not present in the request"                                                                                                                                                  // 2
	MsgMemberMinLength       = "Member must have length greater than or equal to %d"                                                                                                                                                                // part of 3, 151
	MsgNameLength            = "%s must be at least 3 characters long and at most 255 characters long"                                                                                                                                              // 4, 461
	msgMemberPattern         = "Member must satisfy regular expression pattern: %s"                                                                                                                                                                 // part of 5
	MsgMemberMaxLength       = "Member must have length less than or equal to %d"                                                                                                                                                                   // part of 6
	MsgMemberElements        = "Member must satisfy constraint: [%s, %s]"                                                                                                                                                                           // part of 244
	msgMemberEnum            = "Member must satisfy enum value set: [%s]"                                                                                                                                                                           // part of 7-9, 12, 13
	msgReturnValuesEnum      = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"                                                                                                // 10, sic
	MsgMemberMinValue        = "Member must have value greater than or equal to %d"                                                                                                                                                                 // part of 15
	msgMemberMaxValue        = "Member must have value less than or equal to %d"                                                                                                                                                                    // part of 221
	msgNamesWithoutExpr      = "ExpressionAttributeNames can only be specified when using expressions"                                                                                                                                              // 98
	msgValuesWithoutExpr     = "ExpressionAttributeValues can only be specified when using expressions"                                                                                                                                             // 99
	msgValuesWithoutExprNull = "ExpressionAttributeValues can only be specified when using expressions: %s %s null"                                                                                                                                 // 99, classic
	msgMixedStyles           = "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {%s} Expression parameters: {%s}"                                                                         // 105
	msgMapKeys               = "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: " + namePatternText + "]" // 236
)
