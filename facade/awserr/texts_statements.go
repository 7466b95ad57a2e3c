package awserr

// Error texts for PartiQL statements. Package partiql has the texts for syntax errors.
const (
	MsgBatchReadsAndWrites    = "Read and write requests together in the same batch is not supported."                                          // 156
	MsgBatchSelectKey         = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."              // 157
	MsgDuplicateItem          = "Duplicate primary key exists in table"                                                                         // 270
	MsgExistsOutside          = "EXISTS can only be used in ExecuteTransaction write requests."                                                 // 271
	MsgStatementIndex         = "This operation is not supported on an index"                                                                   // 272
	MsgStatementMultiKey      = "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys." // 273
	MsgTokenOfWrite           = "NextToken is only valid on a SELECT statement"                                                                 // 274
	MsgInvalidNextToken       = "Invalid NextToken"                                                                                             // 275
	MsgTransactStatement      = "Validation failed in TransactStatements[%d]: %s"                                                               // 276
	MsgTransactReturning      = "RETURNING clause is not supported in ExecuteTransaction."                                                      // part of 276
	MsgTransactIndex          = "Reads on indices are not supported within transactions."                                                       // part of 276
	MsgTransactSelectKey      = "Select statements within ExecuteTransaction must specify the primary key in the where clause."                 // part of 276
	MsgExistsAlone            = "EXISTS() must contain a single item read with additional condition"                                            // part of 276
	MsgStatementNoIndex       = "The table does not have the specified index"                                                                   // 278
	MsgStatementConsistent    = "Strongly consistent read is not supported on Global Secondary Indexes"                                         // 279
	MsgTransactReadsAndWrites = "ExecuteTransaction API does not support both read and write operations in the same request."                   // 277
)
