package engine

import (
	"errors"

	"github.com/tabletop-emu/tabletop/engine/internal/guardfs"
)

// These are the package's errors, for use with errors.Is. Returned errors wrap one of them, and
// name the table, family or row.
var (
	// ErrClosed is returned by all methods of a DB after Close.
	ErrClosed = errors.New("store is closed")
	// ErrTableNotFound is returned when no table with the name exists.
	ErrTableNotFound = errors.New("table not found")
	// ErrTableExists is returned when a table with the name already exists.
	ErrTableExists = errors.New("table already exists")
	// ErrFamilyNotFound is returned when the table has no family with the name.
	ErrFamilyNotFound = errors.New("column family not found")
	// ErrFamilyExists is returned when the table already has a family with the
	// name.
	ErrFamilyExists = errors.New("column family already exists")
	// ErrInvalid is returned for an argument that is invalid regardless of the contents of the
	// store, such as a mutation of unknown kind.
	ErrInvalid = errors.New("invalid argument")
	// ErrNotCounter is returned when the value to increment is not eight bytes long.
	ErrNotCounter = errors.New("value is not an 8-byte counter")
	// ErrValueTooLarge is returned when an append would make a value longer than
	// its rule allows.
	ErrValueTooLarge = errors.New("value too large")
	// ErrAggregate is returned for a mutation that does not fit its family: SetCell or a
	// read-modify-write on an aggregate family, AddToCell or MergeToCell on an ordinary family, or
	// an input of the wrong type.
	ErrAggregate = errors.New("mutation does not fit the family's type")
	// ErrResourceNotFound is returned when no resource with the name exists.
	ErrResourceNotFound = errors.New("resource not found")
	// ErrBackupNotFound is returned when no backup with the name exists.
	ErrBackupNotFound = errors.New("backup not found")
	// ErrBackupExists is returned when a backup with the name already exists.
	ErrBackupExists = errors.New("backup already exists")
	// ErrBackupBytes is returned when the backups would exceed Options.BackupBytes.
	ErrBackupBytes = errors.New("the size limit of backups is exceeded")
	// ErrSnapshotClosed is returned by Restore if the Snapshot, or the store it was taken from, is
	// closed.
	ErrSnapshotClosed = errors.New("snapshot is closed")
	// ErrNoJournal is returned when a table has no journal for a reason, when the requested term is
	// not its current one, or when the journal ends.
	ErrNoJournal = errors.New("the table has no such journal")
	// ErrJournalPosition is returned for a position that no journal of the store
	// has reached.
	ErrJournalPosition = errors.New("no such position in the journal")
	// ErrJournalTrimmed is returned when a reader requests records older than the retained ones.
	ErrJournalTrimmed = errors.New("the records are no longer retained")
	// ErrRestored is returned by journal readers after a snapshot was restored.
	ErrRestored = errors.New("a snapshot was restored")
	// ErrFormatVersion is returned by Open for a store that a newer version of the program, or
	// another program, has written.
	ErrFormatVersion = errors.New("unsupported format version")
	// ErrNoSpace is returned by all calls once a file of the store could not be written because the
	// disk is full. Acknowledged data is intact when the store is opened again.
	ErrNoSpace = guardfs.ErrNoSpace
	// ErrLocked is returned by Open for a directory that another store has open, in this or another
	// process.
	ErrLocked = guardfs.ErrLocked
)
