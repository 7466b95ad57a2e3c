package testkit

import (
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

type (
	// Fault makes some of the calls of an RPC fail or behave badly, or of a DynamoDB operation
	// from [Env.FailDynamoDB], [Env.Unprocessed] or [Env.StaleReads] on; see [btkit.Fault].
	Fault = btkit.Fault
	// FaultOption narrows the calls that a fault affects, or its effect.
	FaultOption = btkit.FaultOption
)

// OnTable limits a fault to calls on the Bigtable table with that id, or on
// the DynamoDB table with that name.
func OnTable(id string) FaultOption { return btkit.OnTable(id) }

// OnRow limits a fault of RPCs to calls that name the row with that key; see [btkit.OnRow].
func OnRow(key string) FaultOption { return btkit.OnRow(key) }

// Times limits a fault to n calls. Default: no limit.
func Times(n int) FaultOption { return btkit.Times(n) }

// Skip excludes the first n calls that a fault would affect.
func Skip(n int) FaultOption { return btkit.Skip(n) }

// WithProbability applies a fault to each call with probability p, from 0 to 1; see
// [btkit.WithProbability].
func WithProbability(p float64) FaultOption { return btkit.WithProbability(p) }

// Applied makes Env.Fail and [Env.FailDynamoDB] lose the response instead of the request;
// see [btkit.Applied].
func Applied() FaultOption { return btkit.Applied() }

// BehindDynamoDB applies a fault to the calls that the DynamoDB endpoint makes to
// the Bigtable behind it, and not to calls of Bigtable clients.
func BehindDynamoDB() FaultOption { return func(s *fault.Spec) { s.BehindDynamoDB = true } }
