package awserr

// Prefixes of other texts.
const (
	MsgInvalidParameterPrefix = "One or more parameter values were invalid: " // part of row 17
	MsgInvalidRequestPrefix   = "Invalid Request: "                           // part of row 402
)

// Error texts for bodies that are too large, and for members with the wrong JSON type.
const (
	MsgUnexpectedToken     = "Unexpected token received from parser"                   // row 245
	MsgStartOfStructure    = "Start of structure or map found where not expected"      // row 246
	MsgUnexpectedFieldType = "Unexpected field type"                                   // row 247
	MsgUnexpectedValueType = "Unexpected value type in payload"                        // row 248
	MsgRequestTooLarge     = "the request body has at least %d bytes, the limit is %d" // our own text
)

// Error texts for constraints on the members of a request.
const (
	MsgValidationErrors        = "%d validation error%s detected: %s"                                                                                                                                                                         // part of rows 1, 3, 5-10, 14, 15
	MsgMemberClassic           = "Value %s at '%s' failed to satisfy constraint: %s"                                                                                                                                                          // part of rows 1, 5-9, 15
	MsgMemberCurrent           = "Value at '%s' failed to satisfy constraint: %s"                                                                                                                                                             // part of rows 3, 15, 146, 148
	MsgMemberNotNull           = "Member must not be null"                                                                                                                                                                                    // part of row 1
	MsgMemberMinLength         = "Member must have length greater than or equal to %d"                                                                                                                                                        // part of rows 3, 151
	MsgMemberMaxLength         = "Member must have length less than or equal to %d"                                                                                                                                                           // part of row 6
	MsgMemberElements          = "Member must satisfy constraint: [%s, %s]"                                                                                                                                                                   // part of row 244
	MsgMemberPattern           = "Member must satisfy regular expression pattern: %s"                                                                                                                                                         // part of row 5
	MsgMemberEnum              = "Member must satisfy enum value set: [%s]"                                                                                                                                                                   // part of rows 7-9, 12, 13
	MsgMemberMinValue          = "Member must have value greater than or equal to %d"                                                                                                                                                         // part of row 15
	MsgMemberMaxValue          = "Member must have value less than or equal to %d"                                                                                                                                                            // part of row 221
	MsgMapKeys                 = "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]" // row 236
	MsgConditionalOperatorEnum = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"                                                                                                                                // row 241, sic
	MsgReturnValuesEnum        = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"                                                                                        // row 10, sic
	MsgCollectionMetricsEnum   = "ReturnItemCollectionMetrics can only be SIZE or NONE"                                                                                                                                                       // row 479
	MsgReturnValuesOldOrNone   = "ReturnValues can only be ALL_OLD or NONE"                                                                                                                                                                   // row 11
	MsgParameterRequired       = "The parameter '%s' is required but was not present in the request"                                                                                                                                          // row 2
	MsgNameLength              = "%s must be at least 3 characters long and at most 255 characters long"                                                                                                                                      // rows 4, 461
	MsgStatementShown          = "%s(statement=%s, parameters=%s, %s)"                                                                                                                                                                        // part of row 474
)

// Error texts for missing expressions, and for ExpressionAttributeNames and
// ExpressionAttributeValues. Package expr has the texts for the syntax of expressions.
const (
	MsgNamesWithoutExpr      = "ExpressionAttributeNames can only be specified when using expressions"                                                                      // row 98
	MsgValuesWithoutExpr     = "ExpressionAttributeValues can only be specified when using expressions"                                                                     // row 99
	MsgValuesWithoutExprNull = "ExpressionAttributeValues can only be specified when using expressions: %s %s null"                                                         // row 99, classic
	MsgValueInvalid          = "ExpressionAttributeValues contains invalid value: %s for key %s"                                                                            // row 102
	MsgMixedStyles           = "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {%s} Expression parameters: {%s}" // row 105
	MsgNoKeyCondition        = "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."                                             // row 122
)

// Error texts for legacy parameters, which expressions replaced.
const (
	MsgExpectedValueAndList    = MsgInvalidParameterPrefix + "Value and AttributeValueList cannot be used together for Attribute: %s"                 // row 106
	MsgExpectedOperatorUnknown = MsgInvalidParameterPrefix + "Invalid comparison operator"                                                            // row 232
	MsgExpectedExistsOperator  = MsgInvalidParameterPrefix + "Exists and ComparisonOperator cannot be used together for Attribute: %s"                // row 107
	MsgExpectedOperatorAlone   = MsgInvalidParameterPrefix + "Value or AttributeValueList must be used with ComparisonOperator: %s for Attribute: %s" // row 108
	MsgExpectedListAlone       = MsgInvalidParameterPrefix + "AttributeValueList can only be used with a ComparisonOperator for Attribute: %s"        // row 109
	MsgExpectedValueMissing    = MsgInvalidParameterPrefix + "Value must be provided when Exists is %s for Attribute: %s"                             // row 110
	MsgExpectedValueSurplus    = MsgInvalidParameterPrefix + "Value cannot be used when Exists is false for Attribute: %s"                            // row 111
	MsgLegacyArity             = MsgInvalidParameterPrefix + "Invalid number of argument(s) for the %s ComparisonOperator"                            // row 112
	MsgLegacyMixedTypes        = MsgInvalidParameterPrefix + "AttributeValues inside AttributeValueList must be of same type"                         // row 113
	MsgLegacyOperatorType      = MsgInvalidParameterPrefix + "ComparisonOperator %s is not valid for %s AttributeValue type"                          // row 114
	MsgLegacyBetweenOrder      = "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"                   // row 115
	MsgUpdateValueMissing      = MsgInvalidParameterPrefix + "Only DELETE action is allowed when no attribute value is specified"                     // row 116
	MsgUpdateDeleteType        = MsgInvalidParameterPrefix + "DELETE action with value is not supported for the type %s"                              // row 117
	MsgUpdateAddType           = MsgInvalidParameterPrefix + "ADD action is not supported for the type %s"                                            // row 118
	MsgLegacyOperatorAlone     = "ConditionalOperator cannot be used without Filter or Expected"                                                      // row 119
	MsgLegacyOperatorOne       = "ConditionalOperator can only be used when Filter or Expected has two or more elements"                              // row 120
	MsgKeyConditionCount       = "Conditions can be of length 1 or 2 only"                                                                            // row 123
	MsgDuplicateAttribute      = MsgInvalidParameterPrefix + "Duplicate value in attribute name: %s"                                                  // row 121
	MsgEmptyName               = "Empty attribute name"                                                                                               // row 121b
)
