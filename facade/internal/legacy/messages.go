package legacy

import "github.com/tabletop-emu/tabletop/facade/internal/wire"

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
