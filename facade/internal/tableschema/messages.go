package tableschema

import "github.com/tabletop-emu/tabletop/facade/internal/wire"

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	msgKeyNotDefined           = "Invalid KeySchema: Some index key attribute have no definition"                                                                                                    // 16
	msgIndexKeyNotDefined      = wire.MsgInvalidParameterPrefix + "Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]"                        // 17
	msgHashEqualsRange         = "Both the Hash Key and the Range Key element in the KeySchema have the same name"                                                                                   // 18
	msgFirstKeyNotHash         = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"                                                                                              // 19
	msgSecondKeyNotRange       = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"                                                                                            // 20
	msgSurplusDefinitions      = wire.MsgInvalidParameterPrefix + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions"                    // 21
	msgUnusedDefinitions       = wire.MsgInvalidParameterPrefix + "Some AttributeDefinitions are not used. AttributeDefinitions: [%s], keys used: [%s]"                                              // 22
	MsgIndexThroughputOnDemand = wire.MsgInvalidParameterPrefix + "ProvisionedThroughput should not be specified for index: %s when BillingMode is PAY_PER_REQUEST"                                  // 25
	msgOnDemandProvisioned     = wire.MsgInvalidParameterPrefix + "OnDemandThroughput should not be specified when BillingMode is PROVISIONED"                                                       // ours
	msgUnitsOutOfBounds        = "Given value %d for %s is out of bounds"                                                                                                                            // 26
	msgIndexListEmpty          = wire.MsgInvalidParameterPrefix + "List of %s is empty"                                                                                                              // 27
	msgLocalWithoutRange       = wire.MsgInvalidParameterPrefix + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"                               // 28
	msgLocalIndexWithoutRange  = wire.MsgInvalidParameterPrefix + "Index KeySchema does not have a range key for index: %s"                                                                          // 29
	msgLocalIndexOtherHash     = wire.MsgInvalidParameterPrefix + "Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s" // 30
	msgProjectionUnknown       = wire.MsgInvalidParameterPrefix + "Unknown ProjectionType: null"                                                                                                     // 31
	msgNonKeyNotAllowed        = wire.MsgInvalidParameterPrefix + "ProjectionType is %s, but NonKeyAttributes is specified"                                                                          // 32
	msgNonKeyMissing           = wire.MsgInvalidParameterPrefix + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"                                                                 // 33
	msgDuplicateIndex          = wire.MsgInvalidParameterPrefix + "Duplicate index name: %s"                                                                                                         // 34
	msgTooManyLocal            = wire.MsgInvalidParameterPrefix + "Number of LocalSecondaryIndexes exceeds per-table limit of 5"                                                                     // 35
	msgTooManyGlobal           = wire.MsgInvalidParameterPrefix + "GlobalSecondaryIndex count exceeds the per-table limit of 20"                                                                     // 36
	msgTooManyNonKey           = wire.MsgInvalidParameterPrefix + "Number of NonKeyAttributes summed over all indexes exceeds the limit of %d"                                                       // 223
	msgHashAfterRange          = wire.MsgInvalidParameterPrefix + "All HASH key attributes must precede RANGE key attributes in the KeySchema"                                                       // 37
	msgTooManyKeyAttributes    = wire.MsgInvalidParameterPrefix + "The KeySchema exceeds the maximum allowed number of %s key attributes"                                                            // 38
	msgKeyNameTwice            = "The KeySchema contains multiple key attributes with the same name"                                                                                                 // 224
	msgNonKeyTwice             = wire.MsgInvalidParameterPrefix + "Duplicate element in NonKeyAttributes: %s"                                                                                        // 201
	msgDefinedTwice            = "Attribute Name is duplicated: %s"                                                                                                                                  // 202
	msgIndexThroughputNone     = wire.MsgInvalidParameterPrefix + "ProvisionedThroughput is not specified for index: %s"                                                                             // 210
)
