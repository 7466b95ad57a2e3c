package globaltables

import "github.com/tabletop-emu/tabletop/facade/internal/wire"

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	msgVersion2017 = wire.MsgInvalidParameterPrefix + "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)." // 296
	msgNotFound    = "Global table not found: " + msgNoReplicas                                                                                                                                                           // 465
	msgNoReplicas  = "Global table with name: '%s' does not exist."                                                                                                                                                       // 297, 466
)
