// Package dynamodb runs the DynamoDB endpoint of a lab: a server over the lab's rows that
// survives restores, with faults of its own.
package dynamodb
