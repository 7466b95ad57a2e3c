package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// storeLogger forwards Pebble's errors, and drops routine messages.
type storeLogger struct{ d *DB }

// Infof implements pebble.Logger and drops routine messages.
func (storeLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l storeLogger) Errorf(format string, args ...any) {
	if l.d.logger != nil {
		l.d.logger.Warn("store: " + fmt.Sprintf(format, args...))
	}
}

// Fatalf implements pebble.Logger. Pebble would end the process; the store rejects all later
// calls instead.
func (l storeLogger) Fatalf(format string, args ...any) { l.d.fail(fmt.Errorf(format, args...)) }

// fail makes the store reject all later calls. Package btclient recognizes this text, and does not
// retry such calls.
func (d *DB) fail(err error) {
	err = fmt.Errorf("engine: the store has failed and rejects all calls: %w", err)
	if d.failure.CompareAndSwap(nil, &err) && d.logger != nil {
		d.logger.Error(err.Error())
	}
}

// damage adds advice to the error of a damaged table file, and returns other errors unchanged.
func damage(err error) error {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return damaged(*info)
	}
	return err
}

func damaged(info pebble.DataCorruptionInfo) error {
	return fmt.Errorf("table file %s is damaged; %s: %w", info.Path, cure, info.Details)
}

// cure is the advice for a damaged store.
const cure = "put the directory back from a copy, or remove it and load the data again"

// failed returns the error after which the store cannot be trusted, or nil.
func (d *DB) failed() error {
	if p := d.failure.Load(); p != nil {
		return *p
	}
	return nil
}
