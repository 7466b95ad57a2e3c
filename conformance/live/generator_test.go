package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// writers is the number of clients that write. Each has its own items.
const writers = 32

// generator writes items at random.
type generator struct {
	history
	t     *testing.T
	api   *dynamodb.Client
	turns chan struct{}
	under sync.WaitGroup // turns that are not over
	extra atomic.Int64   // written items beside one for each turn
}

func newGenerator(t *testing.T, api *dynamodb.Client) *generator {
	t.Helper()
	g := &generator{t: t, api: api, turns: make(chan struct{})}
	g.records, g.counts, g.loaded = map[int]*record{}, map[string]int{}, 400
	if full() {
		g.loaded = *loaded
	}
	var working sync.WaitGroup
	for i := range writers {
		r := rand.New(rand.NewPCG(*seed, uint64(i)))
		w := &writer{generator: g, id: i, rand: r}
		w.zipf = rand.NewZipf(r, 1.1, 4, uint64(g.loaded/writers-1))
		working.Go(func() {
			for range g.turns {
				w.turn(t.Context())
				g.under.Done()
			}
		})
	}
	t.Cleanup(func() {
		close(g.turns)
		working.Wait()
	})
	return g
}

// give starts n turns of the writers. The last ones may still run when it returns.
func (g *generator) give(n int) {
	for range n {
		g.under.Add(1)
		g.turns <- struct{}{}
	}
}

// quiet waits for the end of all turns.
func (g *generator) quiet() { g.under.Wait() }

// load puts the first items.
func (g *generator) load() {
	g.t.Helper()
	const most = 25
	batches := make(chan []types.WriteRequest)
	var putting sync.WaitGroup
	for range 8 {
		putting.Go(func() {
			for batch := range batches {
				out, err := g.api.BatchWriteItem(g.t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{tableName: batch}})
				if err != nil || len(out.UnprocessedItems) > 0 {
					g.t.Errorf("loading: %v", err)
				}
			}
		})
	}
	var batch []types.WriteRequest
	for i := range g.loaded {
		batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: firstItem(i)}})
		if len(batch) == most || i == g.loaded-1 {
			batches <- batch
			batch = nil
		}
	}
	close(batches)
	putting.Wait()
	if g.t.Failed() {
		g.t.FailNow()
	}
}

// writer writes its items, one request at a time.
type writer struct {
	*generator
	id   int
	rand *rand.Rand
	zipf *rand.Zipf
	big  int // items of 300 KB so far
}

// write is a write of one item, before its outcome.
type write struct {
	*record
	next  item // nil for a deletion
	rev   int
	state int // in the history

	put    *types.Put
	update *types.Update
	delete *types.Delete
}

// turn makes a request, and notes its outcome.
func (w *writer) turn(ctx context.Context) {
	kind, fails, writes := "", false, []*write(nil)
	switch k := w.rand.IntN(100); {
	case k < 40:
		kind, writes = "put", w.some(1, w.put)
	case k < 75:
		kind, writes, fails = "update", w.some(1, w.update), w.rand.IntN(20) == 0
	case k < 85:
		kind, writes = "delete", w.some(1, w.remove)
	case k < 95:
		kind, writes = "batch", w.some(2+w.rand.IntN(4), w.put, w.remove)
	default:
		kind, writes, fails = "transaction", w.some(2+w.rand.IntN(2), w.put, w.update, w.remove), w.rand.IntN(5) == 0
	}
	if len(writes) == 0 {
		return
	}
	if fails { // a condition that does not hold
		writes[0].refuse()
	}
	w.extra.Add(int64(len(writes) - 1))
	for _, x := range writes {
		x.state = w.begin(x.record, x.next)
	}
	err := w.send(ctx, kind, writes)
	var api smithy.APIError
	refused := errors.As(err, &api) && slices.Contains([]string{"ConditionalCheckFailedException", "TransactionCanceledException", "TransactionConflictException"}, api.ErrorCode())
	switch {
	case err == nil && fails:
		w.t.Errorf("a %s succeeds although its condition does not hold", kind)
	case err == nil:
		w.over(writes, kind, "ok", true)
	case refused && (fails || strings.Contains(err.Error(), "TransactionConflict")): // of a transaction that a kill left open
		w.over(writes, kind, "failed", false)
	case ctx.Err() != nil:
		w.over(writes, kind, "unknown", false)
	case broken(err):
		w.resolve(ctx, kind, writes)
	default:
		w.t.Errorf("%s: %v", kind, err)
		w.resolve(ctx, kind, writes)
	}
}

// over notes the outcome of the writes of a request.
func (w *writer) over(writes []*write, kind, outcome string, effect bool) {
	for _, x := range writes {
		if effect {
			x.now = x.next
		}
		x.record.rev = x.rev
		w.end(x.record, x.state, kind, outcome, effect)
	}
}

// broken reports whether a call has no answer, or one that leaves its outcome open.
func broken(err error) bool {
	var api smithy.APIError
	return !errors.As(err, &api) || api.ErrorFault() == smithy.FaultServer || strings.HasPrefix(api.ErrorCode(), "InternalServer")
}

// resolve reads the items of a request without an answer, until the source answers.
func (w *writer) resolve(ctx context.Context, kind string, writes []*write) {
	effects := 0
	for _, x := range writes {
		var got item
		for {
			call, cancel := limited(ctx)
			out, err := w.api.GetItem(call, &dynamodb.GetItemInput{TableName: aws.String(tableName), Key: keyOf(x.number), ConsistentRead: consistent})
			cancel()
			if err == nil {
				got = out.Item
				break
			}
			if ctx.Err() != nil {
				return
			}
			pause(ctx)
		}
		effect := digestOf(got) == digestOf(x.next)
		if !effect && digestOf(got) != digestOf(x.now) {
			w.t.Errorf("item %v of the source is in a state that nobody wrote: %.300s", keyText(keyOf(x.number)), textOf(&types.AttributeValueMemberM{Value: got}))
		}
		if effect {
			effects++
		}
		w.over([]*write{x}, kind, "unknown", effect)
	}
	if kind == "transaction" && effects != 0 && effects != len(writes) {
		w.t.Errorf("%d of %d writes of a transaction took effect", effects, len(writes))
	}
}

// some draws n of the writer's items, and a write of each.
func (w *writer) some(n int, kinds ...func(*write)) (all []*write) {
	for range n {
		r := w.of(w.draw())
		w.mu.Lock()
		resting := r.resting
		w.mu.Unlock()
		if resting || slices.ContainsFunc(all, func(x *write) bool { return x.record == r }) {
			continue
		}
		x := &write{record: r, rev: r.rev + 1}
		kinds[w.rand.IntN(len(kinds))](x)
		all = append(all, x)
	}
	return all
}

// draw returns the number of a random item: for the first writer often the hot one; else mostly one by Zipf's
// law, or any, even one that was not loaded.
func (w *writer) draw() int {
	if w.id == 0 && w.rand.IntN(5) > 0 {
		return 0
	}
	share := w.loaded / writers
	at := int(w.zipf.Uint64())
	switch k := w.rand.IntN(10); {
	case k < 2:
		at = w.rand.IntN(share)
	case k < 3:
		at = share + 1 + w.rand.IntN(share/4)
	}
	return at*writers + w.id
}

func (w *writer) put(x *write) {
	x.next = newItem(w.rand, x.number, x.rev)
	if w.big == 0 && x.number > 0 || w.rand.IntN(2000) == 0 {
		w.big++
		x.next["data"] = str(text(w.rand, 300<<10))
	}
	x.put = &types.Put{TableName: aws.String(tableName), Item: x.next}
}

func (w *writer) remove(x *write) {
	x.delete = &types.Delete{TableName: aws.String(tableName), Key: keyOf(x.number)}
}

// update draws changes of attributes, and makes them in a copy of the item.
func (w *writer) update(x *write) {
	next := maps.Clone(x.now)
	if next == nil {
		next = keyOf(x.number)
	}
	names, operands := map[string]string{}, item{}
	parts := map[string][]string{}
	change := func(verb, format, name string, v types.AttributeValue) {
		names["#"+name] = name
		if v != nil {
			operands[":"+name] = v
		}
		parts[verb] = append(parts[verb], fmt.Sprintf(format, "#"+name, ":"+name))
	}
	set := func(name string, v types.AttributeValue) {
		next[name] = v
		change("SET", "%s = %s", name, v)
	}
	remove := func(name string) {
		delete(next, name)
		change("REMOVE", "%[1]s", name, nil)
	}
	set("rev", num(x.rev))
	for _, k := range w.rand.Perm(6)[:1+w.rand.IntN(3)] {
		switch k {
		case 0:
			set("data", str(text(w.rand, 900)))
		case 1:
			set("big", bigNumber(w.rand))
		case 2: // into the index, within it, or out of it
			if w.rand.IntN(3) == 0 {
				remove("g")
			} else {
				set("g", str(fmt.Sprintf("g%d", w.rand.IntN(50))))
				set("gs", str(fmt.Sprintf("%07d", w.rand.IntN(1_000_000))))
			}
		case 3:
			n, by := 0, w.rand.IntN(10)
			if was, ok := next["n"].(*types.AttributeValueMemberN); ok {
				n, _ = strconv.Atoi(was.Value)
			}
			next["n"] = num(n + by)
			change("ADD", "%s %s", "n", num(by))
		case 4:
			w.changeList(next, remove, change)
			if _, ok := next["list"]; ok {
				operands[":empty"] = &types.AttributeValueMemberL{}
			}
		case 5:
			w.changeSet(next, change)
		}
	}
	var text []string
	for _, verb := range slices.Sorted(maps.Keys(parts)) {
		text = append(text, verb+" "+strings.Join(parts[verb], ", "))
	}
	x.next = next
	x.update = &types.Update{
		TableName: aws.String(tableName), Key: keyOf(x.number), UpdateExpression: aws.String(strings.Join(text, " ")),
		ExpressionAttributeNames: names, ExpressionAttributeValues: operands,
	}
}

// changeList appends to the list, or removes it.
func (w *writer) changeList(next item, remove func(string), change func(verb, format, name string, v types.AttributeValue)) {
	list, _ := next["list"].(*types.AttributeValueMemberL)
	if list != nil && len(list.Value) > 8 {
		remove("list")
		return
	}
	more := []types.AttributeValue{num(w.rand.IntN(10))}
	var was []types.AttributeValue
	if list != nil {
		was = list.Value
	}
	next["list"] = &types.AttributeValueMemberL{Value: slices.Concat(was, more)}
	change("SET", "%[1]s = list_append(if_not_exists(%[1]s, :empty), %[2]s)", "list", &types.AttributeValueMemberL{Value: more})
}

// changeSet adds members to the set, or deletes some.
func (w *writer) changeSet(next item, change func(verb, format, name string, v types.AttributeValue)) {
	some := members(w.rand)
	var was []string
	if set, ok := next["set"].(*types.AttributeValueMemberSS); ok {
		was = set.Value
	}
	verb, left := "ADD", slices.Clone(was)
	if w.rand.IntN(2) == 0 {
		verb = "DELETE"
		left = slices.DeleteFunc(left, func(m string) bool { return slices.Contains(some, m) })
	} else {
		for _, m := range some {
			if !slices.Contains(left, m) {
				left = append(left, m)
			}
		}
	}
	if delete(next, "set"); len(left) > 0 {
		next["set"] = &types.AttributeValueMemberSS{Value: left}
	}
	change(verb, "%s %s", "set", &types.AttributeValueMemberSS{Value: some})
}

// refuse gives the write a condition that does not hold.
func (x *write) refuse() {
	condition, names, operands := aws.String("#rev = :never"), map[string]string{"#rev": "rev"}, item{":never": num(-1)}
	switch {
	case x.put != nil:
		x.put.ConditionExpression, x.put.ExpressionAttributeNames, x.put.ExpressionAttributeValues = condition, names, operands
	case x.delete != nil:
		x.delete.ConditionExpression, x.delete.ExpressionAttributeNames, x.delete.ExpressionAttributeValues = condition, names, operands
	default:
		x.update.ConditionExpression = condition
		x.update.ExpressionAttributeNames["#rev"], x.update.ExpressionAttributeValues[":never"] = "rev", num(-1)
	}
}

// send sends the request.
func (w *writer) send(ctx context.Context, kind string, writes []*write) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	first := writes[0]
	switch kind {
	case "put":
		_, err = w.api.PutItem(ctx, &dynamodb.PutItemInput{TableName: first.put.TableName, Item: first.put.Item})
	case "update":
		u := first.update
		_, err = w.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		})
	case "delete":
		_, err = w.api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: first.delete.TableName, Key: first.delete.Key})
	case "batch":
		var all []types.WriteRequest
		for _, x := range writes {
			if x.put != nil {
				all = append(all, types.WriteRequest{PutRequest: &types.PutRequest{Item: x.put.Item}})
			} else {
				all = append(all, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: x.delete.Key}})
			}
		}
		var out *dynamodb.BatchWriteItemOutput
		out, err = w.api.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{tableName: all}})
		if err == nil && len(out.UnprocessedItems) > 0 {
			err = errors.New("some items were not written")
		}
	default:
		var all []types.TransactWriteItem
		for _, x := range writes {
			all = append(all, types.TransactWriteItem{Put: x.put, Update: x.update, Delete: x.delete})
		}
		_, err = w.api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: all})
	}
	return err
}
