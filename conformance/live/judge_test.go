package live

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attempts is how often a reader repeats a call.
const attempts = 5

// judge compares what the target shows with the histories of the items.
type judge struct {
	*stage
	rand *rand.Rand
	// backwards allows states before those that were seen: after a kill, an ordered follower repeats
	// the changes since its checkpoint.
	backwards bool

	stop context.CancelFunc
	over sync.WaitGroup

	mu   sync.Mutex
	lags []time.Duration // of the watermark behind the clock of the source
	// looks counts the looks at which the target answered, checked the items that they compared.
	looks, checked int
}

func newJudge(s *stage) *judge {
	return &judge{stage: s, rand: rand.New(rand.NewPCG(*seed, 1<<32)), stop: func() {}}
}

// watch looks every 100 ms until rest. The table has to be FOLLOWING.
func (j *judge) watch() {
	ctx, cancel := context.WithCancel(j.t.Context())
	j.stop = cancel
	j.over.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			j.look(ctx)
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
	j.t.Cleanup(j.rest)
}

// allowBackwards allows states before those that were seen, from now on.
func (j *judge) allowBackwards(allow bool) {
	j.g.mu.Lock()
	defer j.g.mu.Unlock()
	j.backwards = allow
}

// rest ends the looks.
func (j *judge) rest() {
	j.stop()
	j.over.Wait()
}

// look samples the watermark, reads items, some of them written shortly before it, and compares them.
func (j *judge) look(ctx context.Context) {
	c := j.checkpoint(ctx)
	if c.Watermark.IsZero() {
		return
	}
	h, applied := &j.g.history, c.Watermark.Add(-lead)
	j.mu.Lock()
	j.lags = append(j.lags, time.Since(applied))
	j.mu.Unlock()
	some := h.recent(applied, 8)
	h.mu.Lock()
	if n := len(h.done); n > 0 {
		for range 4 {
			if r := h.done[j.rand.IntN(n)].record; !slices.Contains(some, r) {
				some = append(some, r)
			}
		}
	}
	lowest := map[string]int{}
	byKey := map[string]*record{}
	var keys []item
	for _, r := range some {
		key := keyOf(r.number)
		keys, byKey[keyText(key)] = append(keys, key), r
		lowest[keyText(key)] = r.before(applied)
	}
	h.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	call, cancel := limited(ctx)
	defer cancel()
	out, err := j.items.BatchGetItem(call, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{tableName: {Keys: keys, ConsistentRead: consistent}}})
	if err != nil || len(out.UnprocessedKeys) > 0 {
		if err != nil && ctx.Err() == nil && !broken(err) {
			j.t.Errorf("reading the target: %v", err)
		}
		return
	}
	got := map[string]item{}
	for _, it := range out.Responses[tableName] {
		got[keyText(it)] = it
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(byKey)) {
		j.compare(byKey[text], text, got[text], lowest[text], c.Watermark)
	}
	j.mu.Lock()
	j.looks++
	j.checked += len(byKey)
	j.mu.Unlock()
}

// compare compares an item of the target with its history: it has to be in a state from lowest on.
func (j *judge) compare(r *record, text string, got item, lowest int, watermark time.Time) {
	from := lowest
	if !j.backwards {
		from = max(lowest, r.seen)
	}
	sum := digestOf(got)
	if at := r.find(from, sum); at >= 0 {
		r.seen = max(r.seen, at)
		return
	}
	switch at := r.find(0, sum); {
	case at < 0:
		j.t.Errorf("item %s of the target is in a state that it never had: %.500s", text, textOf(&types.AttributeValueMemberM{Value: got}))
	case at < lowest:
		j.t.Errorf("item %s of the target is in state %d, but state %d was acknowledged before the watermark %v", text, at, lowest, watermark)
	default:
		j.t.Errorf("item %s of the target is in state %d, but state %d was there before", text, at, r.seen)
	}
}

// final compares all items and index entries of both sides, after all turns are over and all changes
// are applied.
func (j *judge) final() {
	j.t.Helper()
	from := dynamoDB(j.t, j.source, attempts)
	source, target := j.scan(from, ""), j.scan(j.items, "")
	j.g.mu.Lock()
	for number, r := range j.g.records {
		key, sum := keyText(keyOf(number)), gone
		for _, s := range slices.Backward(r.states) {
			if !s.off {
				sum = s.sum
				break
			}
		}
		if source[key] != sum {
			j.t.Errorf("item %s of the source is not in the state of its last write", key)
		}
	}
	j.g.mu.Unlock()
	j.differ("item", source, target)
	entries, copied := j.scan(from, indexName), j.scan(j.items, indexName)
	j.differ("index entry", entries, copied)
	j.t.Logf("%d items and %d index entries are compared at the end", len(source), len(entries))
}

// differ reports the items, or index entries, that differ between source and target.
func (j *judge) differ(what string, source, target map[string]digest) {
	j.t.Helper()
	shown := 0
	report := func(format string, args ...any) {
		if shown++; shown <= 10 {
			j.t.Errorf(format, args...)
		}
	}
	for key, sum := range source {
		if other, ok := target[key]; !ok {
			report("%s %s is missing in the target", what, key)
		} else if other != sum {
			report("%s %s differs", what, key)
		}
	}
	for key := range target {
		if _, ok := source[key]; !ok {
			report("%s %s is in the target alone", what, key)
		}
	}
	if shown > 10 {
		j.t.Errorf("%d more differences", shown-10)
	}
	if len(source) == 0 {
		j.t.Errorf("the source has no %s", what)
	}
}

// scan returns the digests of the items of a table or of its index.
func (j *judge) scan(api *dynamodb.Client, index string) map[string]digest {
	j.t.Helper()
	all := map[string]digest{}
	in := &dynamodb.ScanInput{TableName: aws.String(tableName), ConsistentRead: consistent}
	if index != "" {
		in.IndexName, in.ConsistentRead = &index, nil
	}
	for pages := dynamodb.NewScanPaginator(api, in); pages.HasMorePages(); {
		page, err := pages.NextPage(j.t.Context())
		if err != nil {
			j.t.Fatal(err)
		}
		for _, it := range page.Items {
			if _, ok := all[keyText(it)]; ok {
				j.t.Errorf("a scan has item %s twice", keyText(it))
			}
			all[keyText(it)] = digestOf(it)
		}
	}
	return all
}
