package request

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
)

// maxMemberErrorCount limits the failed constraints in one classic message.
const maxMemberErrorCount = 10

// Request determines the wording of the errors in a response.
type Request struct {
	Operation string
	Current   bool // the newer layer checks the operation: see Layers
}

// Failure is a constraint that a member violates.
type Failure struct {
	member  string
	text    string
	Newer   string // text in the newer wording, or ""
	missing bool   // the member is missing
}

// Failures holds the violated constraints of a request, in the order of the checks.
type Failures []Failure

// Add records that a member violates a constraint. value is AWS's text for the member:
// quoted, or "null".
func (fs *Failures) Add(r Request, member, value, constraint string) {
	f := Failure{member: member, text: fmt.Sprintf(awserr.MsgMemberClassic, value, lowerPath(member), constraint), missing: value == "null"}
	if r.newWording(member, value) {
		f.Newer = fmt.Sprintf(awserr.MsgMemberCurrent, member, constraint)
	}
	*fs = append(*fs, f)
}

// memberOrder is the order of an operation's failures. Other operations and members are in
// the order of the checks.
var memberOrder = map[string][]string{
	"CreateTable": {"AttributeDefinitions", "TableName", "BillingMode", "ProvisionedThroughput", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"},
	"UpdateTable": {"AttributeDefinitions", "TableName", "BillingMode", "ProvisionedThroughput", "GlobalSecondaryIndexUpdates"},
	"DeleteItem":  {"ReturnConsumedCapacity", "TableName", "ReturnValues", "ReturnItemCollectionMetrics", "ConditionalOperator", "Key"},
	"GetItem":     {"ReturnConsumedCapacity", "AttributesToGet", "TableName", "Key"},
	"Query":       {"Select", "IndexName", "ReturnConsumedCapacity", "QueryFilter", "TableName", "ConditionalOperator", "AttributesToGet", "Limit", "KeyConditions"},
	"Scan":        {"Select", "IndexName", "Segment", "TotalSegments", "ReturnConsumedCapacity", "TableName", "ConditionalOperator", "ScanFilter", "Limit", "AttributesToGet"},
	"PutItem":     {"ReturnConsumedCapacity", "TableName", "Item", "ConditionalOperator", "Expected", "ReturnValues", "ReturnItemCollectionMetrics"},
	"UpdateItem":  {"ReturnConsumedCapacity", "TableName", "ReturnItemCollectionMetrics", "ReturnValues", "ConditionalOperator", "Key"},
}

func (r Request) rank(f Failure) int {
	order := memberOrder[r.Operation]
	root, _, _ := strings.Cut(f.member, ".")
	if i := slices.Index(order, root); i >= 0 {
		return i
	}
	return len(order)
}

// Err returns the error for all constraints that were violated so far, or nil.
func (fs Failures) Err(r Request) error {
	slices.SortStableFunc(fs, func(a, b Failure) int { return r.rank(a) - r.rank(b) })
	var older, newer []string
	missing := false
	for _, f := range fs {
		missing = missing || f.missing
		switch {
		case f.Newer == "":
			older = append(older, f.text)
		case r.Current:
			newer = append(newer, f.Newer)
		case len(newer) == 0:
			newer = []string{f.Newer} // AWS stops at the first
		}
	}
	texts := newer
	switch {
	case r.Current && missing:
		// Such a request fails in the older checks.
		texts = nil
		for _, f := range fs {
			texts = append(texts, f.text)
		}
	case len(newer) == 0, !r.Current && len(older) > 0:
		texts = older
	case newer[0] == awserr.MsgConditionalOperatorEnum && !r.isWrite():
		return awserr.Validation("%s", newer[0])
	case r.isWrite():
		texts = newer[:1]
		if options := fs.options(); r.Operation != "UpdateItem" && slices.Contains(options, newer[0]) {
			texts = options
		}
	}
	n := min(len(texts), maxMemberErrorCount)
	if n == 0 {
		return nil
	}
	plural := "s"
	if n == 1 {
		plural = ""
	}
	return awserr.Validation(awserr.MsgValidationErrors, n, plural, strings.Join(texts[:n], "; "))
}

// options returns the texts of the members that select the answer of a write, in the newer
// wording: PutItem and DeleteItem report all of them.
func (fs Failures) options() []string {
	var texts []string
	for _, f := range fs {
		switch f.member {
		case "ReturnConsumedCapacity", "ReturnValues", "ReturnItemCollectionMetrics":
			texts = append(texts, cmp.Or(f.Newer, f.text))
		}
	}
	return texts
}

// newWording reports whether a failed constraint has the newer wording, which names the member
// with capitals, shows no value, and comes before all others. It applies to an empty table
// name, the limits of reads, and the lengths of batches and transactions. The limit of Query,
// the keys of a BatchGetItem and all of SearchVectors have it in every region.
func (r Request) newWording(member, value string) bool {
	switch r.Operation {
	case "PutItem", "UpdateItem", "DeleteItem", "GetItem":
		return r.Current && member == "TableName" && value == "''"
	case "Query":
		return member == "Limit" || r.Current && member == "TableName" && value == "''"
	case "Scan":
		return r.Current && (member == "Limit" || member == "Segment" || member == "TotalSegments" || member == "TableName" && value == "''")
	case "SearchVectors":
		return true
	case "BatchGetItem":
		return strings.HasSuffix(member, ".member.Keys") || r.Current && member == "RequestItems" && value == "'{}'"
	case "BatchWriteItem":
		return r.Current && (strings.HasSuffix(member, ".member") || member == "RequestItems" && value == "'{}'")
	case "TransactGetItems", "TransactWriteItems":
		return r.Current && (member == "ClientRequestToken" || member == "TransactItems" && value != "null")
	default:
		return false
	}
}

// isWrite reports whether the operation writes one item.
func (r Request) isWrite() bool {
	return r.Operation == "PutItem" || r.Operation == "UpdateItem" || r.Operation == "DeleteItem"
}

// Reject returns the error for an invalid expression or value. Three operations use the
// newer prefix.
func (r Request) Reject(message string) error {
	switch r.Operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		if r.Current {
			message = fmt.Sprintf(awserr.MsgValidationErrors, 1, "", message)
		}
	}
	return awserr.Validation("%s", message)
}

// RejectSelect returns the error for an invalid Select, which the newer layer reports
// with its prefix.
func (r Request) RejectSelect(message string) error {
	if r.Current {
		message = fmt.Sprintf(awserr.MsgValidationErrors, 1, "", message)
	}
	return awserr.Validation("%s", message)
}

// Value returns the error that decoding found in a value or an item, or nil.
func (r Request) Value(err error) error {
	if err == nil {
		return nil
	}
	var e *attr.Error
	switch {
	case errors.As(err, &e) && (isUntyped(e) || e.Problem == attr.ManyTypes) && r.newValueWording():
		return awserr.Validation("%s", r.AttributeErrorText(err)) // this text has no prefix
	default:
		return r.Reject(r.AttributeErrorText(err))
	}
}

// isUntyped reports whether a value has no type.
func isUntyped(e *attr.Error) bool { return e.Problem == attr.NoType || e.Problem == attr.UnknownType }

// PlaceholderValue is like Value, but takes the error in an expression attribute value.
func (r Request) PlaceholderValue(key string, err error) error {
	text := r.AttributeErrorText(err)
	named := fmt.Sprintf(awserr.MsgValueInvalid, text, key)
	var e *attr.Error
	switch {
	case !r.newValueWording() || !errors.As(err, &e):
		return r.Reject(named)
	case isUntyped(e):
		return awserr.Validation("%s", text)
	case e.Problem == attr.ManyTypes:
		return awserr.Validation("%s", named)
	case e.IsNumber(), e.Problem == attr.DuplicateMember, e.Problem == attr.NullNotTrue, e.Problem == attr.TooDeep:
		return r.Reject(text)
	case e.Problem == attr.EmptySet && r.isWrite():
		return r.Reject(text)
	default:
		return r.Reject(named)
	}
}

// newValueWording reports whether errors about values have the newer wording: they moved to it
// with the other errors of an operation, except in two operations.
func (r Request) newValueWording() bool {
	return r.Current && r.Operation != "BatchWriteItem" && r.Operation != "Scan"
}

// AttributeErrorText returns AWS's text for an error from package attr.
func (r Request) AttributeErrorText(err error) string {
	var e *attr.Error
	if errors.As(err, &e) {
		if text := e.CurrentAWSMessage(); text != "" && r.newValueWording() {
			return text
		}
		if text, _ := e.AWSMessage(); text != "" {
			return text
		}
	}
	return err.Error()
}

// Expression converts an error from package expr to the error of the response.
func (r Request) Expression(err error) error {
	if err == nil {
		return nil
	}
	var e *expr.Error
	if errors.As(err, &e) {
		if r.Current || e.Classic == "" {
			return r.Reject(e.Message)
		}
		return r.Reject(e.Classic)
	}
	return err
}

// lowerPath writes the path of a member in the older wording, where each name begins with a
// small letter.
func lowerPath(member string) string {
	names := strings.Split(member, ".")
	for i, name := range names {
		if name != "" {
			names[i] = strings.ToLower(name[:1]) + name[1:]
		}
	}
	return strings.Join(names, ".")
}

// OrNull returns the text with which AWS shows a member inside other members: "null" if
// the member is not given.
func OrNull(text *string) string {
	if text == nil {
		return "null"
	}
	return *text
}
