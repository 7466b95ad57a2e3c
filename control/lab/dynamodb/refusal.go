package dynamodb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// returnsOld is the value of ReturnValuesOnConditionCheckFailure that asks for the item.
const returnsOld = "ALL_OLD"

// refusal returns the error with which a fault of spec s answers a request.
func (e *Endpoint) refusal(s *spec, r *http.Request, req *dynamoDBRequest) *awserr.Error {
	f := failures[FailureName(s.Failure.Code)]
	if elements := req.transactElements(); elements > 0 && cancellations[f.code] != "" {
		return e.canceled(s, cancellations[f.code], elements, r, req)
	}
	err := awserr.New(f.code, "%s", cmp.Or(s.Failure.Message, e.textFor(f, req)))
	switch {
	case f.code == awserr.CodeConditionalCheckFailed && req.content.ReturnValuesOnConditionCheckFailure == returnsOld:
		err.Item = e.stored(r, req, req.content.TableName, req.content.Key, req.content.Item)
	case throttled[f.code] != "" && uses[req.operation] != "":
		err.Throttling = e.throttlingReasons(s, throttled[f.code], req)
	}
	return err
}

// textFor returns the service's text of an error for a request.
func (e *Endpoint) textFor(f failure, req *dynamoDBRequest) string {
	c := &req.content
	subject := cmp.Or(c.TargetTableName, c.TableName, c.GlobalTableName, c.TableArn, c.SourceTableName, c.BackupArn, c.ExportArn, c.ImportArn, c.ResourceArn)
	switch f.code {
	case awserr.CodeAccessDenied:
		name := "*"
		if tables := (&spec{}).tables(req); len(tables) > 0 {
			name = tables[0]
		}
		return fmt.Sprintf(f.text, cmp.Or(e.opts.AccountID, facade.DefaultAccountID), req.operation, e.tableARN(name))
	case awserr.CodeBackupInUse, awserr.CodeBackupNotFound:
		subject = cmp.Or(c.BackupArn, subject)
	case awserr.CodeTableNotFound, awserr.CodePointInTimeRecoveryUnavailable:
		subject = cmp.Or(c.SourceTableName, subject)
	case awserr.CodeResourceInUse:
		if req.operation == "CreateTable" {
			return fmt.Sprintf(awserr.MsgTableExists, subject)
		}
	case awserr.CodeThrottling:
		if uses[req.operation] == "" {
			return awserr.MsgThrottledRate
		}
	}
	return strings.ReplaceAll(f.text, "%s", subject)
}

// canceled returns the error of a transaction with the fault's reasons. Without any, each element that
// matches the fault has the reason code.
func (e *Endpoint) canceled(s *spec, code string, elements int, r *http.Request, req *dynamoDBRequest) *awserr.Error {
	codes := s.Failure.Reasons
	if codes == nil {
		codes = make([]string, elements)
		for _, i := range s.conflicts(req) {
			codes[i] = code
		}
	}
	reasons := make([]awserr.CancellationReason, elements)
	for i := range reasons {
		reasons[i].Code = awserr.ReasonNone
		if i >= len(codes) || codes[i] == "" || codes[i] == awserr.ReasonNone {
			continue
		}
		reasons[i] = awserr.CancellationReason{Code: codes[i], Message: cmp.Or(s.Failure.Message, reasonTexts[codes[i]])}
		if codes[i] != awserr.ReasonConditionFailed || i >= len(req.content.TransactItems) {
			continue
		}
		for _, action := range req.content.TransactItems[i] {
			if action.ReturnValuesOnConditionCheckFailure == returnsOld {
				reasons[i].Item = e.stored(r, req, action.TableName, action.Key, action.Item)
			}
		}
	}
	return awserr.TransactionCanceled(reasons)
}

// throttlingReasons names the tables, or the index, of a throttled request.
func (e *Endpoint) throttlingReasons(s *spec, limit string, req *dynamoDBRequest) (out []awserr.ThrottlingReason) {
	use, index := uses[req.operation], req.content.IndexName
	for _, table := range s.tables(req) {
		reason := awserr.ThrottlingReason{Reason: "Table" + use + limit, Resource: e.tableARN(table)}
		if index != "" {
			reason = awserr.ThrottlingReason{Reason: "Index" + use + limit, Resource: e.tableARN(table) + "/index/" + index}
		}
		out = append(out, reason)
	}
	return out
}

// stored returns the item that a request names by its key, or by an item with the key; nil if the
// table does not have one.
func (e *Endpoint) stored(r *http.Request, req *dynamoDBRequest, table string, key, item map[string]json.RawMessage) attr.Item {
	if key == nil {
		var described struct {
			Table struct {
				KeySchema []struct{ AttributeName string }
			}
		}
		if !e.ask(r, req, "DescribeTable", map[string]any{"TableName": table}, &described) {
			return nil
		}
		key = map[string]json.RawMessage{}
		for _, k := range described.Table.KeySchema {
			key[k.AttributeName] = item[k.AttributeName]
		}
	}
	var got struct{ Item json.RawMessage }
	if !e.ask(r, req, "GetItem", map[string]any{"TableName": table, "Key": key, "ConsistentRead": true}, &got) || got.Item == nil {
		return nil
	}
	found, err := attr.UnmarshalItem(got.Item)
	if err != nil {
		return nil
	}
	return found
}

// ask runs a reading operation for the sender of req, without faults, and decodes the answer into out.
// It reports whether that succeeded.
func (e *Endpoint) ask(r *http.Request, req *dynamoDBRequest, operation string, in map[string]any, out any) bool {
	request, err := json.Marshal(in)
	if err != nil {
		return false
	}
	r = r.WithContext(lab.Probe(r.Context()))
	answer, err := e.run(r, req, operation, request)
	return err == nil && json.Unmarshal(answer, out) == nil
}

// run runs an operation for the sender of a request, with the signature of that request.
func (e *Endpoint) run(r *http.Request, req *dynamoDBRequest, operation string, body []byte) ([]byte, error) {
	if req.unsigned {
		return e.server.Call(r.Context(), operation, body)
	}
	return e.server.CallAs(r, req.sent, operation, body)
}

// transactElements returns the number of actions of a transaction; 0 for other requests.
func (req *dynamoDBRequest) transactElements() int {
	return max(len(req.content.TransactItems), len(req.content.TransactStatements))
}

// leftAll is the failure of a batch whose entries all stay unprocessed.
var leftAll = &spec{Failure: fault.Failure{Code: awserr.CodeProvisionedThroughput}}

// tables returns the tables of a request that match the fault.
func (s *spec) tables(req *dynamoDBRequest) []string {
	out := map[string]bool{}
	for _, b := range req.batch() {
		if slices.ContainsFunc(b.entries, func(entry json.RawMessage) bool { return s.namesEntry(b.table, entry) }) {
			out[tableOf(b.table)] = true
		}
	}
	for _, i := range s.conflicts(req) {
		if i < len(req.content.TransactItems) {
			for _, action := range req.content.TransactItems[i] {
				out[tableOf(action.TableName)] = true
			}
		}
	}
	if name := req.content.TableName; name != "" {
		out[tableOf(name)] = true
	}
	return slices.Sorted(maps.Keys(out))
}
