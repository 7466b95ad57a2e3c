// Package loadnote compares a mapping with the note that a load left in the table
// _migration_schema: the mapping with which a Bigtable table was loaded, and the time. The
// migration and the DynamoDB endpoint reject tables that were loaded with another mapping. The note
// also records whether the load was completed, and whether an endpoint has written to the table
// since.
//
// The package does not read or write rows.
package loadnote
