package awserr

// Error texts for PartiQL statements. Package partiql has the texts for syntax errors.
const (
	MsgBatchReadsAndWrites    = "Read and write requests together in the same batch is not supported."                                          // row 156
	MsgBatchSelectKey         = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."              // row 157
	MsgDuplicateItem          = "Duplicate primary key exists in table"                                                                         // row 270
	MsgExistsOutside          = "EXISTS can only be used in ExecuteTransaction write requests."                                                 // row 271
	MsgStatementIndex         = "This operation is not supported on an index"                                                                   // row 272
	MsgStatementMultiKey      = "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys." // row 273
	MsgTokenOfWrite           = "NextToken is only valid on a SELECT statement"                                                                 // row 274
	MsgInvalidNextToken       = "Invalid NextToken"                                                                                             // row 275
	MsgTransactStatement      = "Validation failed in TransactStatements[%d]: %s"                                                               // row 276
	MsgTransactReturning      = "RETURNING clause is not supported in ExecuteTransaction."                                                      // part of row 276
	MsgTransactIndex          = "Reads on indices are not supported within transactions."                                                       // part of row 276
	MsgTransactSelectKey      = "Select statements within ExecuteTransaction must specify the primary key in the where clause."                 // part of row 276
	MsgExistsAlone            = "EXISTS() must contain a single item read with additional condition"                                            // part of row 276
	MsgStatementNoIndex       = "The table does not have the specified index"                                                                   // row 278
	MsgStatementConsistent    = "Strongly consistent read is not supported on Global Secondary Indexes"                                         // row 279
	MsgTransactReadsAndWrites = "ExecuteTransaction API does not support both read and write operations in the same request."                   // row 277
)
