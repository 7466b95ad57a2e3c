package lab

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
)

// ExpectFaults returns a logger that passes messages to log, and logs errors of armed faults at
// level Info because they are intended.
func (l *Lab) ExpectFaults(log *slog.Logger) *slog.Logger {
	if l.opts.Faultless {
		return log
	}
	return slog.New(expected{log.Handler(), l.faults})
}

// expected is a log handler that treats errors of armed faults as information.
type expected struct {
	slog.Handler
	faults *rpcFaults
}

// Handle implements slog.Handler.
func (h expected) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo && h.injected(r) {
		if !h.Enabled(ctx, slog.LevelInfo) {
			return nil
		}
		r = r.Clone()
		r.Level = slog.LevelInfo
	}
	return h.Handler.Handle(ctx, r)
}

// injected reports whether a record has the error of an armed fault.
func (h expected) injected(r slog.Record) bool {
	armed, found := h.faults.All(), false
	if len(armed) == 0 {
		return false
	}
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		found = ok && slices.ContainsFunc(armed, func(f *fault.Fault) bool { return f.Spec().Err != nil && errors.Is(err, f.Spec().Err) })
		return !found
	})
	return found
}

// WithAttrs implements slog.Handler.
func (h expected) WithAttrs(attrs []slog.Attr) slog.Handler {
	return expected{h.Handler.WithAttrs(attrs), h.faults}
}

// WithGroup implements slog.Handler.
func (h expected) WithGroup(name string) slog.Handler {
	return expected{h.Handler.WithGroup(name), h.faults}
}
