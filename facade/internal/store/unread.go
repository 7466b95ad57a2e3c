package store

import (
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// MaxUnreadNamed is the maximum number of rows that an error names.
const MaxUnreadNamed = 10

// Unread collects rows that the mapping cannot read, so that they are reported together.
type Unread struct {
	rows  int64
	first []error
}

// Add adds a row that cannot be read because of err.
func (u *Unread) Add(row []byte, err error) {
	if u.rows++; len(u.first) < MaxUnreadNamed {
		u.first = append(u.first, fmt.Errorf("row %q: %w", row, err))
	}
}

// Err returns an error that names up to MaxUnreadNamed of the collected rows of a table, and
// the remedy. It returns nil if u is empty.
func (u *Unread) Err(table, remedy string) error {
	if u.rows == 0 {
		return nil
	}
	which := ""
	if u.rows > MaxUnreadNamed {
		which = fmt.Sprintf(" (the first %d are named)", MaxUnreadNamed)
	}
	return fmt.Errorf("%s of table %s cannot be read by the mapping%s: %s:\n%w", phrase.Counted(u.rows, "row"), table, which, remedy, errors.Join(u.first...))
}
