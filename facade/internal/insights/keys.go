package insights

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// MostKeys is the number of keys that each rule counts. The service reports the same
// number.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/contributorinsights_HowItWorks.html
const MostKeys = 100

// KeyCount bounds the number of uses of a key: it is at most Count, and at least
// Count-Over.
type KeyCount struct {
	Key         json.RawMessage // attributes of a partition key or a whole key
	Count, Over uint64
}

// Top lists the most used keys of a table or an index in descending order of use. It has
// partition keys (PKC, PKT) and keys of items (SKC, SKT), by reads and writes (PKC, SKC)
// and by throttled requests (PKT, SKT).
type Top struct{ PKC, SKC, PKT, SKT []KeyCount }

// Keys counts the uses of keys while insights are on. It is safe for concurrent use. It
// holds at most MostKeys keys per rule.
type Keys struct {
	mu sync.Mutex
	of map[watched]*[rules]counter
}

// watched is a table or an index since the last change of its insights.
type watched struct {
	table, index string
	since        int64
}

// maxWatched limits the counters, which include those of deleted tables.
const maxWatched = 5000

// The rules, in the order of Rules.
const (
	pkc = iota
	skc
	pkt
	skt
	rules
)

// Use counts a use of a key of a table, or of its index ix if that is not nil. key may
// consist of only the partition key, and may have additional attributes. A nil key counts
// nothing. refused is the error of a rejected request, or nil.
func (k *Keys) Use(t *tabledef.Table, ix *tabledef.Index, key attr.Item, refused error) {
	if len(t.Insights) == 0 || key == nil {
		return
	}
	index, of := "", tabledef.IndexKeyOf(t.Key)
	if ix != nil {
		index, of = ix.Name, ix.Key
	}
	i := t.Insights[index]
	throttled := isThrottled(refused)
	if !i.Enabled || i.Mode == ThrottledKeys && !throttled {
		return
	}
	partition, ok := keyText(key, tabledef.IndexKey{Hash: of.Hash})
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.countersLocked(watched{t.ID, index, i.Changed})
	first, second := pkc, skc
	if throttled {
		first, second = pkt, skt
	}
	c[first].add(partition)
	if item, ok := keyText(key, of); ok && len(of.Range) > 0 {
		c[second].add(item)
	}
}

// isThrottled reports whether err refuses an item because of throughput.
func isThrottled(err error) bool {
	e, ok := awserr.As(err)
	return ok && len(e.Throttling) > 0
}

func (k *Keys) countersLocked(at watched) *[rules]counter {
	c := k.of[at]
	if c == nil {
		for other := range k.of {
			if other.table == at.table && other.index == at.index || len(k.of) >= maxWatched {
				delete(k.of, other)
			}
		}
		if k.of == nil {
			k.of = map[watched]*[rules]counter{}
		}
		c = new([rules]counter)
		k.of[at] = c
	}
	return c
}

// keyText returns the JSON of the attributes of a key; ok is false if one is missing.
func keyText(key attr.Item, of tabledef.IndexKey) (text string, ok bool) {
	some := make(attr.Item, len(of.Hash)+len(of.Range))
	for _, a := range of.Attributes() {
		v, ok := key[a.Name]
		if !ok {
			return "", false
		}
		some[a.Name] = v
	}
	return string(attr.AppendItemJSON(nil, some)), true
}

// counter counts the most used keys. If it is full, a new key replaces the least used one and
// inherits its count as Over.
type counter map[string]*KeyCount

func (c *counter) add(key string) {
	if *c == nil {
		*c = counter{}
	}
	if there := (*c)[key]; there != nil {
		there.Count++
		return
	}
	if len(*c) < MostKeys {
		(*c)[key] = &KeyCount{Key: json.RawMessage(key), Count: 1}
		return
	}
	least := ""
	for key, n := range *c {
		if least == "" || n.Count < (*c)[least].Count {
			least = key
		}
	}
	n := (*c)[least]
	delete(*c, least)
	n.Key, n.Over = json.RawMessage(key), n.Count
	n.Count++
	(*c)[key] = n
}

func (c counter) top() []KeyCount {
	out := make([]KeyCount, 0, len(c))
	for _, n := range c {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), bytes.Compare(a.Key, b.Key))
	})
	return out
}

// Top returns the keys of a table or an index that were used most since its insights last
// changed.
func (k *Keys) Top(t *tabledef.Table, index string) Top {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.of[watched{t.ID, index, t.Insights[index].Changed}]
	if c == nil {
		return Top{}
	}
	return Top{c[pkc].top(), c[skc].top(), c[pkt].top(), c[skt].top()}
}
