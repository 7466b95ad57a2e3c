package insights

import (
	"fmt"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

func watchedTable(mode string) *tabledef.Table {
	t := &tabledef.Table{Name: "t", ID: "id", Insights: map[string]tabledef.Insights{"": {Enabled: true, Mode: mode, Changed: 1}}}
	t.Key = attr.KeySchema{Hash: attr.KeyAttr{Name: "k"}}
	return t
}

// Of many keys the most used ones are kept, with counts within the stated bounds, and no more
// than the limit.
func TestKeys_Bounded(t *testing.T) {
	t.Parallel()
	var k Keys
	of := watchedTable(AllKeys)
	for i := range 10_000 {
		name := fmt.Sprintf("rare %d", i)
		if i%4 == 0 {
			name = fmt.Sprintf("hot %d", i/4%5)
		}
		k.Use(of, nil, attr.Item{"k": {Type: attr.S, Str: name}}, nil)
	}
	top := k.Top(of, "").PKC
	if len(top) != MostKeys {
		t.Fatalf("%d keys are kept", len(top))
	}
	for _, n := range top[:5] {
		if n.Count < 500 || n.Count-n.Over > 500 || string(n.Key)[:12] != `{"k":{"S":"h` {
			t.Errorf("among the first five is %s, %d, of which %d may be others", n.Key, n.Count, n.Over)
		}
	}
}

// Throttled uses are counted separately, and alone in the mode THROTTLED_KEYS; a table
// without insights costs nothing.
func TestKeys_Throttled(t *testing.T) {
	t.Parallel()
	key := attr.Item{"k": {Type: attr.S, Str: "a"}}
	for mode, accessed := range map[string]int{AllKeys: 2, ThrottledKeys: 0} {
		var k Keys
		of := watchedTable(mode)
		k.Use(of, nil, key, nil)
		k.Use(of, nil, key, fmt.Errorf("refused: %w", &awserr.Error{Throttling: make([]awserr.ThrottlingReason, 1)}))
		k.Use(of, nil, attr.Item{"k": {Type: attr.S, Str: "b"}}, awserr.Validation("no"))
		if top := k.Top(of, ""); len(top.PKC) != accessed || len(top.PKT) != 1 || top.PKT[0].Count != 1 {
			t.Errorf("%s: %+v", mode, top)
		}
	}
}

func TestKeys_Off(t *testing.T) { //nolint:paralleltest // it counts allocations
	var k Keys
	off, key := watchedTable(AllKeys), attr.Item{"k": {Type: attr.S, Str: "a"}}
	off.Insights = nil
	if n := testing.AllocsPerRun(100, func() { k.Use(off, nil, key, nil) }); n != 0 || k.of != nil {
		t.Errorf("%v allocations where nothing is watched, %d counters", n, len(k.of))
	}
}
