// Package tabledef defines DynamoDB tables and their indexes as the catalog stores them:
// their keys, their states while they change, and their encoding. It contains only data;
// package store acts on it.
package tabledef
