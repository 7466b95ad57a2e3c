package compare

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// LockText returns the content of the fixture's lock file, or nil if the fixture has no
// mapping.
func LockText(f *table.Fixture, j *table.Job) ([]byte, error) {
	if f.Mapping == nil {
		return nil, nil
	}
	lock, err := j.Mapping.Lock()
	if err != nil {
		return nil, fmt.Errorf("locking the mapping of table %s: %w", j.Report.Name, err)
	}
	return lock.JSON()
}

// compareLock compares the mapping of a fixture with its lock file, if it has one. A mapping
// with another lock writes other rows.
func compareLock(r *table.Run, f *table.Fixture, j *table.Job) error {
	text, err := f.OptionalFile(mapfile.LockFile)
	if err != nil || text == nil || f.Mapping == nil {
		return err
	}
	was, err := mapfile.ParseLock(text)
	if err != nil {
		return source.Damaged(source.FixtureInvalid, source.Position{File: mapfile.LockFile}, err, "the lock file cannot be parsed")
	}
	now, err := j.Mapping.Lock()
	if err != nil {
		return fmt.Errorf("locking the mapping of table %s: %w", j.Report.Name, err)
	}
	return r.Report.Check("mapping lock", j.Report.Target, func() (string, error) {
		for _, change := range was.Changes(now) {
			r.Report.Fail(report.Failure{Kind: report.GoldenDiffers, Table: j.Report.Target, File: mapfile.LockFile, Detail: change})
		}
		return "hash " + now.Hash[:12], nil
	})
}
