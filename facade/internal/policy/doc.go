// Package policy stores the resource policies of tables and streams. It checks a document
// as DynamoDB does, converts it to the form that DynamoDB stores, and numbers its
// revisions. It does not evaluate policies, because callers have no identities. Its
// errors are those of DynamoDB.
package policy
