package awserr

// Prefixes of other texts.
const (
	MsgInvalidParameterPrefix = "One or more parameter values were invalid: " // part of 17
	MsgInvalidRequestPrefix   = "Invalid Request: "                           // part of 402
)

// Error texts for malformed calls, and for members with the wrong type.
const (
	MsgUnexpectedToken     = "Unexpected token received from parser"                   // 245
	MsgStartOfStructure    = "Start of structure or map found where not expected"      // 246
	MsgUnexpectedFieldType = "Unexpected field type"                                   // 247
	MsgUnexpectedValueType = "Unexpected value type in payload"                        // 248
	MsgRequestTooLarge     = "the request body has at least %d bytes, the limit is %d" // ours
)

// Error texts for constraints on the members of a request.
const (
	MsgValidationErrors        = "%d validation error%s detected: %s"                                                                                                                                                                         // part of 1, 3, 5-10, 14, 15
	MsgMemberClassic           = "Value %s at '%s' failed to satisfy constraint: %s"                                                                                                                                                          // part of 1, 5-9, 15
	MsgMemberCurrent           = "Value at '%s' failed to satisfy constraint: %s"                                                                                                                                                             // part of 3, 15, 146, 148
	MsgMemberNotNull           = "Member must not be null"                                                                                                                                                                                    // part of 1
	MsgMemberMinLength         = "Member must have length greater than or equal to %d"                                                                                                                                                        // part of 3, 151
	MsgMemberMaxLength         = "Member must have length less than or equal to %d"                                                                                                                                                           // part of 6
	MsgMemberElements          = "Member must satisfy constraint: [%s, %s]"                                                                                                                                                                   // part of 244
	MsgMemberPattern           = "Member must satisfy regular expression pattern: %s"                                                                                                                                                         // part of 5
	MsgMemberEnum              = "Member must satisfy enum value set: [%s]"                                                                                                                                                                   // part of 7-9, 12, 13
	MsgMemberMinValue          = "Member must have value greater than or equal to %d"                                                                                                                                                         // part of 15
	MsgMemberMaxValue          = "Member must have value less than or equal to %d"                                                                                                                                                            // part of 221
	MsgMapKeys                 = "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]" // 236
	MsgConditionalOperatorEnum = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"                                                                                                                                // 241, sic
	MsgReturnValuesEnum        = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"                                                                                        // 10, sic
	MsgCollectionMetricsEnum   = "ReturnItemCollectionMetrics can only be SIZE or NONE"                                                                                                                                                       // 479
	MsgReturnValuesOldOrNone   = "ReturnValues can only be ALL_OLD or NONE"                                                                                                                                                                   // 11
	MsgParameterRequired       = "The parameter '%s' is required but was not present in the request"                                                                                                                                          // 2
	MsgNameLength              = "%s must be at least 3 characters long and at most 255 characters long"                                                                                                                                      // 4, 461
	MsgStatementShown          = "%s(statement=%s, parameters=%s, %s)"                                                                                                                                                                        // part of 474
)

// Error texts for missing expressions, and for their names and values. Package expr has the texts
// for expression syntax.
const (
	MsgNamesWithoutExpr      = "ExpressionAttributeNames can only be specified when using expressions"                                                                      // 98
	MsgValuesWithoutExpr     = "ExpressionAttributeValues can only be specified when using expressions"                                                                     // 99
	MsgValuesWithoutExprNull = "ExpressionAttributeValues can only be specified when using expressions: %s %s null"                                                         // 99, classic
	MsgValueInvalid          = "ExpressionAttributeValues contains invalid value: %s for key %s"                                                                            // 102
	MsgMixedStyles           = "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {%s} Expression parameters: {%s}" // 105
	MsgNoKeyCondition        = "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."                                             // 122
)

// Error texts for legacy parameters, which expressions replaced.
const (
	MsgExpectedValueAndList    = MsgInvalidParameterPrefix + "Value and AttributeValueList cannot be used together for Attribute: %s"                 // 106
	MsgExpectedOperatorUnknown = MsgInvalidParameterPrefix + "Invalid comparison operator"                                                            // 232
	MsgExpectedExistsOperator  = MsgInvalidParameterPrefix + "Exists and ComparisonOperator cannot be used together for Attribute: %s"                // 107
	MsgExpectedOperatorAlone   = MsgInvalidParameterPrefix + "Value or AttributeValueList must be used with ComparisonOperator: %s for Attribute: %s" // 108
	MsgExpectedListAlone       = MsgInvalidParameterPrefix + "AttributeValueList can only be used with a ComparisonOperator for Attribute: %s"        // 109
	MsgExpectedValueMissing    = MsgInvalidParameterPrefix + "Value must be provided when Exists is %s for Attribute: %s"                             // 110
	MsgExpectedValueSurplus    = MsgInvalidParameterPrefix + "Value cannot be used when Exists is false for Attribute: %s"                            // 111
	MsgLegacyArity             = MsgInvalidParameterPrefix + "Invalid number of argument(s) for the %s ComparisonOperator"                            // 112
	MsgLegacyMixedTypes        = MsgInvalidParameterPrefix + "AttributeValues inside AttributeValueList must be of same type"                         // 113
	MsgLegacyOperatorType      = MsgInvalidParameterPrefix + "ComparisonOperator %s is not valid for %s AttributeValue type"                          // 114
	MsgLegacyBetweenOrder      = "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"                   // 115
	MsgUpdateValueMissing      = MsgInvalidParameterPrefix + "Only DELETE action is allowed when no attribute value is specified"                     // 116
	MsgUpdateDeleteType        = MsgInvalidParameterPrefix + "DELETE action with value is not supported for the type %s"                              // 117
	MsgUpdateAddType           = MsgInvalidParameterPrefix + "ADD action is not supported for the type %s"                                            // 118
	MsgLegacyOperatorAlone     = "ConditionalOperator cannot be used without Filter or Expected"                                                      // 119
	MsgLegacyOperatorOne       = "ConditionalOperator can only be used when Filter or Expected has two or more elements"                              // 120
	MsgKeyConditionCount       = "Conditions can be of length 1 or 2 only"                                                                            // 123
	MsgDuplicateAttribute      = MsgInvalidParameterPrefix + "Duplicate value in attribute name: %s"                                                  // 121
	MsgEmptyName               = "Empty attribute name"                                                                                               // 121b
)
