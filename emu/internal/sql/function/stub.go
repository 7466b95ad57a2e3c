package function

import "github.com/tabletop-emu/tabletop/emu/internal/sql/value"

func operatorTable() []*Function { return nil }
func subscriptTable() []*Function { return nil }
func conditionTable() []*Function { return nil }
func mathTable() []*Function { return nil }
func trigonometryTable() []*Function { return nil }
func stringTable() []*Function { return nil }
func textTable() []*Function { return nil }
func codecTable() []*Function { return nil }
func regexpTable() []*Function { return nil }
func dateTable() []*Function { return nil }
func timestampTable() []*Function { return nil }
func arrayTable() []*Function { return nil }
func mapTable() []*Function { return nil }
func jsonTable() []*Function { return nil }
func hashTable() []*Function { return nil }
func aggregateTable() []*Function { return nil }
func statisticsTable() []*Function { return nil }
func sketchTable() []*Function { return nil }
func missingTable() []*Function { return nil }

// Quote returns a value as a literal of a statement.
func Quote(v value.Value) string { return v.Str() }
