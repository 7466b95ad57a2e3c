package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// storeLogger passes Pebble's messages on.
type storeLogger struct{ d *DB }

// Infof implements pebble.Logger; what Pebble does all day is not of interest.
func (storeLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l storeLogger) Errorf(format string, args ...any) {
	if l.d.logger != nil {
		l.d.logger.Warn("store: " + fmt.Sprintf(format, args...))
	}
}

// Fatalf implements pebble.Logger. Where Pebble would end the process, the
// store stops taking calls instead.
func (l storeLogger) Fatalf(format string, args ...any) { l.d.fail(fmt.Errorf(format, args...)) }

// fail makes the store refuse all calls from now on.
func (d *DB) fail(err error) {
	err = fmt.Errorf("engine: the store has failed and takes no more calls: %w", err)
	if d.failure.CompareAndSwap(nil, &err) && d.logger != nil {
		d.logger.Error(err.Error())
	}
}

// damage is err, or what is to be known if it is that of a damaged table file.
func damage(err error) error {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return damaged(*info)
	}
	return err
}

func damaged(info pebble.DataCorruptionInfo) error {
	return fmt.Errorf("table file %s is damaged; %s: %w", info.Path, cure, info.Details)
}

// cure says what can be done about damage.
const cure = "put the directory back from a copy, or remove it and load the data again"

// failed returns the error of a store that can no longer be trusted.
func (d *DB) failed() error {
	if p := d.failure.Load(); p != nil {
		return *p
	}
	return nil
}
