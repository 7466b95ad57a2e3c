package facade

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
)

// These are limits of operations of the DynamoDB API. Package wire has the limits of a
// request's body, package attr those of values, package expr those of expressions. Sources: the
// SDK models of 2026-11 and the quotas page of the developer guide.
const (
	// Keys and items.
	maxHashKeyBytes  = attr.MaxHashBytes
	maxRangeKeyBytes = attr.MaxSortBytes
	maxItemBytes     = tablespec.MaxItemBytes

	// Pages and batches.
	maxPageBytes          = store.PageBytes // examined by one Query or Scan
	maxBatchGetKeys       = 100             // keys of one BatchGetItem, over all tables
	maxBatchGetBytes      = 16 << 20        // returned by one BatchGetItem
	maxBatchWriteRequests = 25              // puts and deletes of one BatchWriteItem
	maxTransactItems      = 100             // actions of one transaction
	maxTransactBytes      = 4 << 20         // items, keys and values of one TransactWriteItems; unprojected items of one TransactGetItems
	maxRequestTokenChars  = 36
	maxBatchStatements    = 25 // of one BatchExecuteStatement
	maxStatementChars     = 8192
	maxNextTokenChars     = 32768
	maxTotalSegments      = 1_000_000
	maxListTablesLimit    = 100
	maxInsightsPage       = 100 // of ListContributorInsights

	// Tables.
	maxTables                  = 2500 // of an account in a region
	maxNamespaces              = 1000 // of one server, with Options.Namespaced
	maxKeySchemaElements       = 2    // of a table or a local index
	maxTTLAttributeChars       = 255
	maxRevisionChars           = 255 // of a resource policy
	accountMaxCapacityUnits    = 80_000
	tableMaxCapacityUnits      = 40_000
	endpointCachePeriodMinutes = 1440
)
