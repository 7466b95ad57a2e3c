package facade

import (
	"context"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// OperationInfo describes one row of the support table.
type OperationInfo struct {
	// Service is "DynamoDB" or "DynamoDBStreams".
	Service string
	// Name is the operation's name in the API model, such as "PutItem".
	Name string
	// Note lists the missing parts of the operation and its differences from DynamoDB, or
	// is empty.
	Note string
}

// Operations returns all operations in the API models of DynamoDB and DynamoDB Streams of
// 2026-11, in alphabetical order, with the operations of DynamoDB Streams last. The support
// table is generated from the result.
func Operations() []OperationInfo {
	out := make([]OperationInfo, len(operations))
	for i, op := range operations {
		out[i] = OperationInfo{Service: op.service, Name: op.name, Note: op.note}
	}
	return out
}

// operation is a row of the operation table.
type operation struct {
	service string
	name    string
	note    string
	scan    func(body []byte) any // reads a usual body, and returns nil for others; nil: always decode
	handle  handler
}

// handler runs an operation, and returns the JSON of its response; nil means no body.
type handler func(ctx context.Context, s *Server, op *operation, r rawRequest) ([]byte, error)

// These are the names of the services, and the prefixes of X-Amz-Target.
const (
	serviceDynamoDB = "DynamoDB"
	serviceStreams  = "DynamoDBStreams"
	targetDynamoDB  = "DynamoDB_20120810."
	targetStreams   = "DynamoDBStreams_20120810."
)

// serveItems acts like serve for an operation on items. It scans usual requests without
// decoding them as a whole. Operations on tables must decode: they store parts of requests, and
// a part of a scanned request would keep its whole body in memory.
func serveItems[In, Out any](name string, fn func(*Server, context.Context, *In) (*Out, error), note string) *operation {
	op := serve(name, fn, note)
	op.scan = func(body []byte) any {
		in := new(In)
		if !wire.Scan(body, in) {
			return nil
		}
		return in
	}
	return op
}

// serve returns the row of an operation that fn handles. fn gets the decoded request, whose
// members are unchecked. If fn returns nil, the response has no body.
func serve[In, Out any](name string, fn func(*Server, context.Context, *In) (*Out, error), note string) *operation {
	_, wantsHost := any(new(In)).(hostInput)
	return &operation{
		service: serviceDynamoDB, name: name, note: note,
		handle: func(ctx context.Context, s *Server, _ *operation, r rawRequest) ([]byte, error) {
			in, scanned := r.scanned.(*In)
			if !scanned {
				in = new(In)
				if err := wire.Decode(r.body, in); err != nil {
					return nil, err
				}
			}
			if wantsHost {
				any(in).(hostInput).sentTo(r.host) //nolint:forcetypeassert // it is one
			}
			out, err := fn(s, ctx, in)
			if err != nil || out == nil {
				return nil, err
			}
			if w, ok := any(out).(watermarked); ok && r.watermark != nil {
				*r.watermark = w.Watermark()
			}
			return wire.Encode(out)
		},
	}
}

// watermarked is a response with the position up to which a stream was delivered.
type watermarked interface{ Watermark() string }

// hostInput is a request that needs the host that it was sent to.
type hostInput interface{ sentTo(host string) }

// checked makes op reject bodies for which check returns an error, before they are decoded. It
// returns op.
func (op *operation) checked(check func(body []byte) error) *operation {
	handle := op.handle
	op.handle = func(ctx context.Context, s *Server, op *operation, r rawRequest) ([]byte, error) {
		if err := check(r.body); err != nil {
			return nil, err
		}
		return handle(ctx, s, op, r)
	}
	return op
}

// serveStreams acts like serve for the streams service.
func serveStreams[In, Out any](name string, fn func(*Server, context.Context, *In) (*Out, error), note string) *operation {
	op := serve(name, fn, note)
	op.service = serviceStreams
	return op
}

// These are the notes that several operations share.
const (
	noteBuckets          = "with --buckets DIR, whose folders act as buckets; otherwise refused"
	noteBulk             = noteBuckets + "; known from documentation only: the form of lines and reports is a guess, tier and rate have no effect"
	noteGlobalTables2017 = "version 2017.11.29 has no global tables, as on the service"
	noteInsights         = "the state is stored; the control API lists the most used keys"
	noteKinesis          = "changes are delivered to `--kinesis-endpoint` or `--kinesis-dir`; without either they stay in the log for 24 hours, where a dump shows them"
	noteNoReplicas       = "one region only: tables have no replicas"
	notePages            = "a page of 1 MB counts an overhead per item, measured for items near 43 KB and 87 KB"
	notePartiQL          = "statements of up to 400 levels"
	noteRecovery         = "native writes are not in the log: a restore has their present state"
	noteVectors          = "the search is exact: it compares all vectors; VectorSearchRequestBytes counts them all"
	notePolicy           = "policies are checked and stored, not enforced"
)

// operations has a row for every operation of the API models, in the order of Operations.
var operations = []*operation{
	serveItems("BatchExecuteStatement", (*Server).batchExecuteStatement, notePartiQL),
	serveItems("BatchGetItem", (*Server).batchGetItem, ""),
	serveItems("BatchWriteItem", (*Server).batchWriteItem, ""),
	serve("CancelBulkOperation", (*Server).cancelBulkOperation, noteBulk),
	serve("CreateBackup", (*Server).createBackup, ""),
	serve("CreateGlobalTable", (*Server).createGlobalTable, noteGlobalTables2017),
	serve("CreateTable", (*Server).createTable, "class and encryption settings are kept and described, without effect, and so is throughput without --throttle"),
	serve("DeleteBackup", (*Server).deleteBackup, ""),
	serveItems("DeleteItem", (*Server).deleteItem, ""),
	serve("DeleteResourcePolicy", (*Server).deleteResourcePolicy, notePolicy),
	serve("DeleteTable", (*Server).deleteTable, ""),
	serve("DescribeBackup", (*Server).describeBackup, ""),
	serve("DescribeBulkOperation", (*Server).describeBulkOperation, noteBulk),
	serve("DescribeContinuousBackups", (*Server).describeContinuousBackups, ""),
	serve("DescribeContributorInsights", (*Server).describeContributorInsights, noteInsights),
	serve("DescribeEndpoints", (*Server).describeEndpoints, ""),
	serve("DescribeExport", (*Server).describeExport, noteBuckets),
	serve("DescribeGlobalTable", (*Server).describeGlobalTable, noteGlobalTables2017),
	serve("DescribeGlobalTableSettings", (*Server).describeGlobalTableSettings, noteGlobalTables2017),
	serve("DescribeImport", (*Server).describeImport, noteBuckets),
	serve("DescribeKinesisStreamingDestination", (*Server).describeKinesisStreamingDestination, ""),
	serve("DescribeLimits", (*Server).describeLimits, "the default limits of an account; with throttling no table exceeds them"),
	serve("DescribeTable", (*Server).describeTable, "counts items when called, above 10,000 in the background at most once a minute; before the first such count 10,001, and 0 for indexes; sizes above 4 MB are estimated"),
	serve("DescribeTableReplicaAutoScaling", (*Server).describeTableReplicaAutoScaling, noteNoReplicas),
	serve("DescribeTimeToLive", (*Server).describeTimeToLive, ""),
	serve("DisableKinesisStreamingDestination", (*Server).disableKinesisStreamingDestination, noteKinesis),
	serve("EnableKinesisStreamingDestination", (*Server).enableKinesisStreamingDestination, noteKinesis),
	serveItems("ExecuteStatement", (*Server).executeStatement, notePartiQL),
	serveItems("ExecuteTransaction", (*Server).executeTransaction, notePartiQL),
	serve("ExportTableToPointInTime", (*Server).exportTableToPointInTime, noteBuckets),
	serveItems("GetItem", (*Server).getItem, ""),
	serve("GetResourcePolicy", (*Server).getResourcePolicy, notePolicy),
	serve("ImportTable", (*Server).importTable, noteBuckets),
	serve("ListBackups", (*Server).listBackups, ""),
	serve("ListBulkOperations", (*Server).listBulkOperations, noteBulk),
	serve("ListContributorInsights", (*Server).listContributorInsights, noteInsights),
	serve("ListExports", (*Server).listExports, noteBuckets),
	serve("ListGlobalTables", (*Server).listGlobalTables, noteGlobalTables2017),
	serve("ListImports", (*Server).listImports, noteBuckets),
	serve("ListTables", (*Server).listTables, ""),
	serve("ListTagsOfResource", (*Server).listTagsOfResource, ""),
	serveItems("PutItem", (*Server).putItem, ""),
	serve("PutResourcePolicy", (*Server).putResourcePolicy, notePolicy),
	serveItems("Query", (*Server).query, notePages),
	serve("RestoreTableFromBackup", (*Server).restoreTableFromBackup, "the region of the backup does not matter"),
	serve("RestoreTableToPointInTime", (*Server).restoreTableToPointInTime, noteRecovery),
	serveItems("Scan", (*Server).scan, notePages),
	serve("SearchVectors", (*Server).searchVectors, noteVectors).checked(checkSearchMembers),
	serve("StartBulkPutItems", (*Server).startBulkPutItems, noteBulk),
	serve("TagResource", (*Server).tagResource, ""),
	serveItems("TransactGetItems", (*Server).transactGetItems, ""),
	serveItems("TransactWriteItems", (*Server).transactWriteItems, ""),
	serve("UntagResource", (*Server).untagResource, ""),
	serve("UpdateContinuousBackups", (*Server).updateContinuousBackups, noteRecovery),
	serve("UpdateContributorInsights", (*Server).updateContributorInsights, noteInsights),
	serve("UpdateGlobalTable", (*Server).updateGlobalTable, noteGlobalTables2017),
	serve("UpdateGlobalTableSettings", (*Server).updateGlobalTableSettings, noteGlobalTables2017),
	serveItems("UpdateItem", (*Server).updateItem, ""),
	serve("UpdateKinesisStreamingDestination", (*Server).updateKinesisStreamingDestination, noteKinesis),
	serve("UpdateTable", (*Server).updateTable, "no replicas"),
	serve("UpdateTableReplicaAutoScaling", (*Server).updateTableReplicaAutoScaling, noteNoReplicas),
	serve("UpdateTimeToLive", (*Server).updateTimeToLive, ""),
	serveStreams("DescribeStream", (*Server).describeStream, ""),
	serveStreams("GetRecords", (*Server).getRecords, "every process over one Bigtable reads the changes of all; an unfinished write of a killed process delays later changes until that process counts as dead"),
	serveStreams("GetShardIterator", (*Server).getShardIterator, ""),
	serveStreams("ListStreams", (*Server).listStreams, ""),
}

// operationsByTarget holds the operations by the value of X-Amz-Target.
var operationsByTarget = func() map[string]*operation {
	byTarget := make(map[string]*operation, len(operations))
	for _, op := range operations {
		prefix := targetDynamoDB
		if op.service == serviceStreams {
			prefix = targetStreams
		}
		byTarget[prefix+op.name] = op
	}
	return byTarget
}()

// operationOfTarget returns the operation that an X-Amz-Target header names, or an
// UnknownOperationException.
func operationOfTarget(target string) (*operation, error) {
	if op, ok := operationsByTarget[target]; ok {
		return op, nil
	}
	if !strings.HasPrefix(target, targetDynamoDB) && !strings.HasPrefix(target, targetStreams) {
		return nil, awserr.New(awserr.CodeUnknownOperation, "")
	}
	return nil, awserr.New(awserr.CodeUnknownOperation, awserr.MsgTargetUnknown, target)
}
