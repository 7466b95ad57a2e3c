package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// maxBytes limits a document.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-considerations.html
const maxBytes = 20480

// defaultVersion begins a document that was stored without a version.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_version.html
const defaultVersion = `{"Version":"2008-10-17",`

// The members of a document and of a statement, in the order of the stored form.
var (
	documentMembers  = []string{"Version", "Id", "Statement"}
	statementMembers = []string{"Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition"}
)

// actions are the names that a policy may contain: operations and other permissions.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
var actions = []string{
	"AssociateTableReplica", "BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "CancelBulkOperation",
	"ConditionCheckItem", "CreateBackup", "CreateGlobalTable", "CreateTable", "CreateTableReplica", "DeleteBackup",
	"DeleteItem", "DeleteResourcePolicy", "DeleteTable", "DescribeBackup", "DescribeBulkOperation",
	"DescribeContinuousBackups", "DescribeContributorInsights", "DescribeEndpoints", "DescribeExport",
	"DescribeGlobalTable", "DescribeGlobalTableSettings", "DescribeImport", "DescribeKinesisStreamingDestination",
	"DescribeLimits", "DescribeReservedCapacity", "DescribeReservedCapacityOfferings", "DescribeStream",
	"DescribeTable", "DescribeTableReplicaAutoScaling", "DescribeTimeToLive", "DisableKinesisStreamingDestination",
	"EnableKinesisStreamingDestination", "ExecuteStatement", "ExecuteTransaction", "ExportTableToPointInTime",
	"GetAbacStatus", "GetItem", "GetRecords", "GetResourcePolicy", "GetShardIterator", "ImportTable", "ListBackups",
	"ListBulkOperations", "ListContributorInsights", "ListExports", "ListGlobalTables", "ListImports", "ListStreams",
	"ListTables", "ListTagsOfResource", "PartiQLDelete", "PartiQLInsert", "PartiQLSelect", "PartiQLUpdate",
	"PurchaseReservedCapacityOfferings", "PutItem", "PutResourcePolicy", "Query", "ReadDataForReplication",
	"ReplicateSettings", "RestoreTableFromAwsBackup", "RestoreTableFromBackup", "RestoreTableToPointInTime", "Scan",
	"SearchVectors", "StartAwsBackupJob", "StartBulkPutItems", "TagResource", "TransactGetItems", "TransactWriteItems",
	"UntagResource", "UpdateAbacStatus", "UpdateContinuousBackups", "UpdateContributorInsights", "UpdateGlobalTable",
	"UpdateGlobalTableSettings", "UpdateItem", "UpdateKinesisStreamingDestination", "UpdateTable",
	"UpdateTableReplicaAutoScaling", "UpdateTimeToLive", "WriteDataForReplication",
}

// AllowsAction reports whether a policy may name an action. It may name one of DynamoDB's
// actions, in upper or lower case, or a pattern with stars and question marks that
// matches one.
func AllowsAction(name string) bool {
	pattern, found := strings.CutPrefix(strings.ToLower(name), "dynamodb:")
	return found && slices.ContainsFunc(actions, func(action string) bool {
		matched, err := path.Match(pattern, strings.ToLower(action))
		return err == nil && matched
	})
}

// canonical returns the canonical form of a document, in which equivalent documents are
// equal: without spaces, members in order, a list of one as its element, an account as its
// root user.
func canonical(text string) (string, error) {
	if len(text) > maxBytes {
		return "", awserr.Validation(awserr.MsgPolicyTooLarge)
	}
	var parsed any
	if err := jsonv2.Unmarshal([]byte(text), &parsed); err != nil {
		return "", invalid(awserr.MsgPolicyJSON)
	}
	if _, isList := parsed.([]any); isList {
		return "", invalid(awserr.MsgPolicyJSON)
	}
	document, ok := parsed.(map[string]any)
	if !ok {
		return "", invalid(awserr.MsgPolicyNotOne)
	}
	statements, given := document["Statement"]
	if !given || !only(document, documentMembers) {
		return "", syntaxError(text)
	}
	list, err := statementsOf(statements)
	if err != nil {
		return "", err
	}
	ids := map[string]bool{}
	ordered := make([]member, 0, len(list))
	for _, element := range list {
		statement, ok := element.(map[string]any)
		if !ok || !only(statement, statementMembers) {
			return "", syntaxError(text)
		}
		if err := check(statement); err != nil {
			if errors.Is(err, errSyntax) {
				err = syntaxError(text)
			}
			return "", err
		}
		if id, ok := statement["Sid"].(string); ok {
			if ids[id] {
				return "", invalid(awserr.MsgPolicySameIDs)
			}
			ids[id] = true
		}
		ordered = append(ordered, member{value: inOrder(statement, statementMembers)})
	}
	document["Statement"] = ordered
	return string(appendValue(nil, inOrder(document, documentMembers))), nil
}

func invalid(why string) error {
	return awserr.Validation(awserr.MsgPolicyDocument, why)
}

// errSyntax means that the statement is malformed.
var errSyntax = errors.New("no statement")

// syntaxError returns the error for text outside the grammar of policies. As far as known,
// the service names the end of the text.
func syntaxError(text string) error {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return invalid(fmt.Sprintf(awserr.MsgPolicySyntax, strings.Count(text, "\n")+1, len(last)+1))
}

func only(object map[string]any, members []string) bool {
	for name := range object {
		if !slices.Contains(members, name) {
			return false
		}
	}
	return true
}

func statementsOf(given any) ([]any, error) {
	list, ok := given.([]any)
	switch {
	case !ok:
		return []any{given}, nil
	case len(list) == 0:
		return nil, invalid(awserr.MsgPolicyNoStatement)
	}
	return list, nil
}

// check checks one statement and simplifies its members.
func check(statement map[string]any) error {
	effect, given := statement["Effect"]
	if !given {
		return invalid(fmt.Sprintf(awserr.MsgPolicyMissingField, "Effect"))
	}
	if effect != "Allow" && effect != "Deny" {
		return errSyntax
	}
	if err := checkPrincipal(statement); err != nil {
		return err
	}
	for _, name := range []string{"Action", "Resource"} {
		value, given := statement[name]
		if negated := "Not" + name; !given {
			if value, given = statement[negated]; !given {
				return invalid(fmt.Sprintf(awserr.MsgPolicyMissingField, name))
			}
			name = negated
		}
		texts, ok := textsOf(value)
		if !ok {
			return errSyntax
		}
		if strings.HasSuffix(name, "Action") {
			if unknown := slices.DeleteFunc(slices.Clone(texts), AllowsAction); len(unknown) > 0 {
				return invalid(fmt.Sprintf(awserr.MsgPolicyActions, strings.Join(unknown, ", ")))
			}
		}
		statement[name] = one(texts)
	}
	return nil
}

// checkPrincipal checks and simplifies the principals of a statement. It rejects an
// unconditional permission for everybody.
func checkPrincipal(statement map[string]any) error {
	name := "Principal"
	principal, given := statement[name]
	if !given {
		name = "NotPrincipal"
		if principal, given = statement[name]; !given {
			return invalid(fmt.Sprintf(awserr.MsgPolicyMissingField, "Principal"))
		}
	}
	everybody := principal == "*"
	if kinds, ok := principal.(map[string]any); ok && len(kinds) > 0 {
		for kind, value := range kinds {
			texts, ok := textsOf(value)
			if !ok || !slices.Contains([]string{"AWS", "Service", "Federated", "CanonicalUser"}, kind) {
				return awserr.Validation(awserr.MsgPolicyPrincipal)
			}
			for i, text := range texts {
				everybody = everybody || text == "*"
				if kind == "AWS" && isAccount(text) {
					texts[i] = "arn:aws:iam::" + text + ":root"
				}
			}
			kinds[kind] = one(texts)
		}
	} else if !everybody {
		return awserr.Validation(awserr.MsgPolicyPrincipal)
	}
	if _, bounded := statement["Condition"]; everybody && !bounded && name == "Principal" && statement["Effect"] == "Allow" {
		return awserr.Validation(awserr.MsgPolicyUnbounded)
	}
	return nil
}

// isAccount reports whether text is the number of an account.
func isAccount(text string) bool {
	return len(text) == 12 && strings.Trim(text, "0123456789") == ""
}

// textsOf returns a text, or a list of texts, as a list.
func textsOf(value any) ([]string, bool) {
	if text, ok := value.(string); ok {
		return []string{text}, true
	}
	list, ok := value.([]any)
	texts := make([]string, len(list))
	for i, element := range list {
		if texts[i], ok = element.(string); !ok {
			return nil, false
		}
	}
	return texts, ok && len(texts) > 0
}

// one returns the element of a list of one, or the list.
func one(texts []string) any {
	if len(texts) == 1 {
		return texts[0]
	}
	return texts
}

// member is a member of an object whose order is fixed, or an element of a list.
type member struct {
	name  string
	value any
}

type object []member

func inOrder(given map[string]any, names []string) object {
	var ordered object
	for _, name := range names {
		if value, ok := given[name]; ok {
			ordered = append(ordered, member{name, value})
		}
	}
	return ordered
}

// appendValue appends the JSON of a value; the members of a map by name.
func appendValue(b []byte, value any) []byte {
	switch value := value.(type) {
	case object:
		for i, m := range value {
			b = append(append(append(append(b, "{,"[min(i, 1)]), '"'), m.name...), `":`...)
			b = appendValue(b, m.value)
		}
		return append(b, '}')
	case []member:
		for i, m := range value {
			b = appendValue(append(b, "[,"[min(i, 1)]), m.value)
		}
		return append(b, ']')
	default:
		text := new(strings.Builder)
		to := json.NewEncoder(text)
		to.SetEscapeHTML(false)
		if err := to.Encode(value); err != nil {
			panic(fmt.Sprintf("policy: encoding JSON that was decoded before: %v", err))
		}
		return append(b, strings.TrimSuffix(text.String(), "\n")...)
	}
}
