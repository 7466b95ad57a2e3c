// Package policy stores the resource policies of tables and streams: it checks a document as
// DynamoDB does, converts it to the form that DynamoDB stores, and numbers its revisions. It
// does not evaluate policies: callers have no identities. Its errors are DynamoDB's.
package policy
