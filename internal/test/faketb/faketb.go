// Package faketb implements testing.TB for examples, and for tests that check how a test fails.
package faketb

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// TB is a testing.TB that records a failure instead of failing a test.
type TB struct {
	testing.TB // for the methods that testkit does not use

	Message string   // message of the last failure
	Logs    []string // messages of Logf

	ctx      context.Context
	cleanups []func()
}

// New returns a TB for an example.
func New() *TB { return &TB{ctx: context.Background()} }

// Name implements testing.TB.
func (f *TB) Name() string { return "faketb" }

// Helper implements testing.TB.
func (f *TB) Helper() {}

// Context implements testing.TB.
func (f *TB) Context() context.Context { return f.ctx }

// Cleanup implements testing.TB.
func (f *TB) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }

// Errorf implements testing.TB.
func (f *TB) Errorf(format string, args ...any) { f.Message = fmt.Sprintf(format, args...) }

// Failed implements testing.TB.
func (f *TB) Failed() bool { return f.Message != "" }

// Logf implements testing.TB.
func (f *TB) Logf(format string, args ...any) { f.Logs = append(f.Logs, fmt.Sprintf(format, args...)) }

// Fatalf records the failure and panics with f.
func (f *TB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(f)
}

// End runs the cleanups and prints a failure, as at the end of a test.
func (f *TB) End() {
	for _, fn := range slices.Backward(f.cleanups) {
		fn()
	}
	if f.Message != "" {
		fmt.Println("failed:", f.Message) //nolint:forbidigo // the output of an example
	}
}

// Failure runs fn, and returns the message with which fn fails its test.
func Failure(t *testing.T, fn func(testing.TB)) (message string) {
	t.Helper()
	f := &TB{ctx: t.Context()}
	defer func() {
		if p := recover(); p != nil && p != any(f) {
			panic(p)
		}
		message, f.Message = f.Message, ""
		f.End()
	}()
	fn(f)
	return ""
}
