// Package loadnote compares a mapping with the note of a load in the table _migration_schema:
// the mapping that a Bigtable table was loaded with, and the time. The migration and the
// DynamoDB endpoint reject rows that another mapping laid out. The note also records whether
// the load ended, whether an endpoint has written to the table since, and whether a migration
// follows a live table into it.
//
// The package does not read or write rows.
package loadnote
