// Package dynamodb runs the DynamoDB endpoint of a lab: a server over the lab's rows that survives
// restores of the data, and has its own faults.
package dynamodb
