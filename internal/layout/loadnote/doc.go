// Package loadnote compares a mapping with what a load notes in the table
// _migration_schema: by which mapping a Bigtable table was loaded, and at what time.
// The migration and the DynamoDB door refuse by it rows that another mapping laid out.
// It tells besides whether the load came to its end, and whether a door has written in
// the table since.
//
// What it does not do: it reads and writes no rows.
package loadnote
