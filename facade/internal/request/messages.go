package request

import (
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	msgValidationErrors        = "%d validation error%s detected: %s"                                          // part of 1, 3, 5-10, 14, 15
	msgMemberClassic           = "Value %s at '%s' failed to satisfy constraint: %s"                           // part of 1, 5-9, 15
	msgMemberCurrent           = "Value at '%s' failed to satisfy constraint: %s"                              // part of 3, 15, 146, 148
	MsgConditionalOperatorEnum = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]" // 241, sic
	msgValueInvalid            = "ExpressionAttributeValues contains invalid value: %s for key %s"             // 102
)

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	msgVersion2017 = wire.MsgInvalidParameterPrefix + "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)." // 296
	msgNotFound    = "Global table not found: " + msgNoReplicas                                                                                                                                                           // 465
	msgNoReplicas  = "Global table with name: '%s' does not exist."                                                                                                                                                       // 297, 466
)

// The texts about these parameters. The number behind a text is its row in
// facade/testdata/messages.tsv.
const (
	msgExpectedValueAndList    = wire.MsgInvalidParameterPrefix + "Value and AttributeValueList cannot be used together for Attribute: %s"                 // 106
	msgExpectedOperatorUnknown = wire.MsgInvalidParameterPrefix + "Invalid comparison operator"                                                            // 232
	msgExpectedExistsOperator  = wire.MsgInvalidParameterPrefix + "Exists and ComparisonOperator cannot be used together for Attribute: %s"                // 107
	msgExpectedOperatorAlone   = wire.MsgInvalidParameterPrefix + "Value or AttributeValueList must be used with ComparisonOperator: %s for Attribute: %s" // 108
	msgExpectedListAlone       = wire.MsgInvalidParameterPrefix + "AttributeValueList can only be used with a ComparisonOperator for Attribute: %s"        // 109
	msgExpectedValueMissing    = wire.MsgInvalidParameterPrefix + "Value must be provided when Exists is %s for Attribute: %s"                             // 110
	msgExpectedValueSurplus    = wire.MsgInvalidParameterPrefix + "Value cannot be used when Exists is false for Attribute: %s"                            // 111
	msgLegacyArity             = wire.MsgInvalidParameterPrefix + "Invalid number of argument(s) for the %s ComparisonOperator"                            // 112
	msgLegacyMixedTypes        = wire.MsgInvalidParameterPrefix + "AttributeValues inside AttributeValueList must be of same type"                         // 113
	msgLegacyOperatorType      = wire.MsgInvalidParameterPrefix + "ComparisonOperator %s is not valid for %s AttributeValue type"                          // 114
	msgLegacyBetweenOrder      = "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"                        // 115
	msgUpdateValueMissing      = wire.MsgInvalidParameterPrefix + "Only DELETE action is allowed when no attribute value is specified"                     // 116
	msgUpdateDeleteType        = wire.MsgInvalidParameterPrefix + "DELETE action with value is not supported for the type %s"                              // 117
	msgUpdateAddType           = wire.MsgInvalidParameterPrefix + "ADD action is not supported for the type %s"                                            // 118
	msgLegacyOperatorAlone     = "ConditionalOperator cannot be used without Filter or Expected"                                                           // 119
	msgLegacyOperatorOne       = "ConditionalOperator can only be used when Filter or Expected has two or more elements"                                   // 120
	msgKeyConditionCount       = "Conditions can be of length 1 or 2 only"                                                                                 // 123
	msgDuplicateAttribute      = wire.MsgInvalidParameterPrefix + "Duplicate value in attribute name: %s"                                                  // 121
	// MsgNoKeyCondition is of a Query that has neither of its two.
	MsgNoKeyCondition = "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request." // 122
)

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
	msgStatementShown        = "%s(statement=%s, parameters=%s, %s)"                                                                                                                                                                                // part of 474
)
