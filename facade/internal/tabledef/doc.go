// Package tabledef defines DynamoDB tables and their indexes as the catalog stores them:
// their keys, their states while they change, and the encoding of both. It contains data
// only; package store acts on it.
package tabledef
