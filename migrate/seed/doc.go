// Package seed creates DynamoDB tables with their items from files, before clients connect,
// and writes tables to a folder that it reads again. An endpoint is any implementation of
// DynamoDB's operations.
//
// [Open] recognizes each path by its content: descriptions of tables, the inputs of package
// source, the model of AWS's design tool, fixture folders, and folders of all these. [Seed.Fill]
// leaves tables with items as they are, so that it can run at every start over the same data. A
// tag marks a table until it is full: the next run completes what a killed process began.
package seed
