package testkit

import (
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

type (
	// Fault makes some calls of an RPC or of a DynamoDB operation fail or misbehave.
	// [Env.FailDynamoDB], [Env.DynamoDBLatency], [Env.Unprocessed] and [Env.StaleReads] start
	// faults of DynamoDB; see [btkit.Fault] for the others.
	Fault = btkit.Fault
	// FaultOption restricts the calls that a fault affects, or changes its effect.
	FaultOption = btkit.FaultOption
)

// OnTable limits a fault to calls on the table or materialized view of Bigtable with the given id, or
// on the DynamoDB table with the given name. For a fault of an RPC, that name selects the Bigtable table
// with the items, if the DynamoDB table exists when the fault starts and no Bigtable table has that id.
func OnTable(id string) FaultOption { return btkit.OnTable(id) }

// OnRow limits a fault of an RPC to calls that name the row with the given key; see [btkit.OnRow].
func OnRow(key string) FaultOption { return btkit.OnRow(key) }

// Times limits a fault to n calls. Default: no limit.
func Times(n int) FaultOption { return btkit.Times(n) }

// Skip makes a fault ignore the first n calls that it would affect.
func Skip(n int) FaultOption { return btkit.Skip(n) }

// WithProbability applies a fault to each call with probability p, from 0 to 1; see
// [btkit.WithProbability].
func WithProbability(p float64) FaultOption { return btkit.WithProbability(p) }

// Applied makes Env.Fail and [Env.FailDynamoDB] drop the response instead of the request; see
// [btkit.Applied].
func Applied() FaultOption { return btkit.Applied() }

// BehindDynamoDB applies a fault to the calls that the DynamoDB endpoint makes to the Bigtable
// behind it, instead of calls of Bigtable clients.
func BehindDynamoDB() FaultOption { return func(s *fault.Spec) { s.BehindDynamoDB = true } }
