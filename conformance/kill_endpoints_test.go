package conformance

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/conformance/linear"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// The data of the clients of several endpoints. A group has few items, so that calls meet.
// There are many groups, so that each has few calls without an answer: the checker tries their
// possible effects in every order.
const (
	endpointCount   = 3
	endpointClients = 50 // of each endpoint
	endpointGroups  = 60
	groupItems      = 3
)

var endpointStep = flag.Int("conformance.step", 0, "how many calls of several endpoints are answered between what happens to the endpoints; 0: as many as the tier of the tests asks for")

// TestKill_Endpoints runs 150 clients of three endpoints over one Bigtable on the same items,
// while one endpoint is repeatedly stopped and resumed, and another is killed in between. The
// clients' results have a sequential order, and the indexes match the items.
func TestKill_Endpoints(t *testing.T) {
	t.Parallel()
	behind := serveBigtable(t)
	f := &fleet{t: t, target: behind.exports["BIGTABLE_EMULATOR_HOST"], history: linear.New(endpointCount * endpointClients)}
	f.slots = make([]endpointSlot, endpointCount)
	t.Cleanup(f.killAll)
	for i := range f.slots {
		f.slots[i].ready = make(chan struct{})
		f.start(i)
	}
	f.open()
	kills, step := killCount(long.Enabled()), cmp.Or(*endpointStep, 150)
	if long.Enabled() {
		step = cmp.Or(*endpointStep, 400)
	}
	f.work(func(answered func(calls int)) {
		choose := rand.New(rand.NewPCG(*killSeed, endpointCount*endpointClients))
		for range kills {
			order := choose.Perm(endpointCount)
			stopped, killed := order[0], order[1]
			answered(step)
			f.signal(stopped, syscall.SIGSTOP)
			answered(step)
			f.kill(killed)
			answered(step)
			f.start(killed)
			answered(step)
			f.signal(stopped, syscall.SIGCONT)
		}
		answered(step)
	})
	f.check()
}

// fleet is a set of endpoints over one Bigtable, with their clients.
type fleet struct {
	t       *testing.T
	target  string // the Bigtable
	history *linear.History

	mu    sync.Mutex // guards slots
	slots []endpointSlot
}

// endpointSlot is the place of an endpoint and its successors.
type endpointSlot struct {
	p     *process // nil: no endpoint
	db    *dynamodb.Client
	ready chan struct{} // closed when there is an endpoint
}

// start starts an endpoint.
func (f *fleet) start(i int) {
	f.t.Helper()
	p, err := serve("--target", f.target, "--dynamodb", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.slots[i]
	s.p, s.db = p, oneShotClient(f.t, p)
	close(s.ready)
}

// kill ends an endpoint in the middle of its work.
func (f *fleet) kill(i int) {
	f.t.Helper()
	f.mu.Lock()
	p := f.slots[i].p
	f.slots[i] = endpointSlot{ready: make(chan struct{})}
	f.mu.Unlock()
	if err := p.kill(); err != nil {
		f.t.Error(err)
	}
}

func (f *fleet) killAll() {
	for i := range f.slots {
		if f.slots[i].p != nil {
			f.kill(i)
		}
	}
}

// signal stops an endpoint, or resumes it.
func (f *fleet) signal(i int, s syscall.Signal) {
	f.t.Helper()
	if err := f.slots[i].p.Process.Signal(s); err != nil {
		f.t.Error(err)
	}
}

// client returns the client of an endpoint, and waits for the endpoint.
func (f *fleet) client(i int) *dynamodb.Client {
	f.mu.Lock()
	ready := f.slots[i].ready
	f.mu.Unlock()
	<-ready
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[i].db
}

var groupsTable = aws.String("groups")

func groupKey(group, i int) item { return item{"group": s("g" + strconv.Itoa(group)), "id": n(i)} }

// open creates the table and its items, all of which are 0.
func (f *fleet) open() {
	f.t.Helper()
	newItems(f.t, f.client(0), *groupsTable, func(in *dynamodb.CreateTableInput) {
		in.KeySchema = keySchema("group", "id")
		in.AttributeDefinitions = []types.AttributeDefinition{attribute("group", "S"), attribute("id", "N"), attribute("n", "N")}
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: aws.String("global"), KeySchema: keySchema("n", "id"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}}
		in.LocalSecondaryIndexes = []types.LocalSecondaryIndex{{
			IndexName: aws.String("local"), KeySchema: keySchema("group", "n"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}}
	})
	for group := range endpointGroups {
		for i := range groupItems {
			it := groupKey(group, i)
			it["n"] = n(0)
			put(f.t, f.client(0), groupsTable, it)
		}
	}
}

// work makes calls with all clients while happen runs, which can wait until n more calls are
// answered, and then waits for the clients.
func (f *fleet) work(happen func(answered func(calls int))) {
	answers, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for id := range endpointCount * endpointClients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(*killSeed, uint64(id)))
			for {
				f.call(id, randomCall(rng))
				select {
				case answers <- struct{}{}:
				case <-over:
					return
				}
			}
		})
	}
	happen(func(calls int) {
		for range calls {
			<-answers
		}
	})
	close(over)
	go func() {
		wg.Wait()
		close(ended)
	}()
	<-ended
}

// call makes a call with a client, and records it.
func (f *fleet) call(id int, c groupCall) {
	f.history.Record(id, 1, c, func() (any, linear.Known) {
		output, known := f.try(id%endpointCount, c)
		// The same request at other endpoints: it takes effect once.
		for other := 1; other < endpointCount && known == linear.Unknown && c.verb == transferBetween; other++ {
			if again, at := f.try((id+other)%endpointCount, c); at == linear.Answered && again == true {
				return again, at
			}
		}
		if known == linear.Unknown && (c.verb == getOne || c.verb == getGroup) {
			known = linear.Refused
		}
		return output, known
	})
}

// try makes a call at an endpoint, and returns the knowledge about it.
func (f *fleet) try(endpoint int, c groupCall) (any, linear.Known) {
	output, err := c.make(f.t.Context(), f.client(endpoint))
	switch code(err) {
	case "":
		return output, linear.Answered
	case "TransactionConflictException", "TransactionCanceledException":
		return nil, linear.Refused // a failed condition is an answer, see make
	case "InternalServerError", "ServiceUnavailable", "RequestLimitExceeded", "TransactionInProgressException":
		return nil, linear.Unknown
	}
	if !isBroken(err) {
		f.t.Errorf("endpoint %d: %+v: %v", endpoint, c, err)
	}
	return nil, linear.Unknown
}

// check examines the data after the end of the endpoints, through another one, and the
// history.
func (f *fleet) check() {
	f.t.Helper()
	f.killAll()
	f.start(0)
	byKey := map[string]int{}
	items := scanAll(f.t, f.client(0), groupsTable, nil)
	for _, it := range items {
		number, err := numberOf(it, "n")
		if err != nil {
			f.t.Error(err)
		}
		byKey[texts([]item{it}, "group", "id")[0]] = number
	}
	if want := endpointGroups * groupItems; len(byKey) != want {
		f.t.Errorf("%d items, want %d", len(byKey), want)
	}
	for index, attributes := range map[string][]string{"global": nil, "local": {"group", "id", "n"}} {
		want, got := texts(items, attributes...), texts(scanAll(f.t, f.client(0), groupsTable, aws.String(index)))
		if !slices.Equal(want, got) {
			f.t.Errorf("index %s holds %q, want %q", index, got, want)
		}
	}
	for group := range endpointGroups {
		f.history.Record(0, 1, groupCall{verb: getGroup, group: group}, func() (any, linear.Known) {
			var state groupState
			for i := range state {
				state[i] = byKey[texts([]item{groupKey(group, i)})[0]]
			}
			return state, linear.Answered
		})
	}
	all, unanswered := f.history.Count(linear.Unknown)
	f.t.Logf("%d calls, %d of them without an answer", all, unanswered)
	model := linear.Model(groupState{}, doGroup, func(input any) string { return strconv.Itoa(input.(groupCall).group) })
	if err := f.history.Check(model, filepath.Join(f.t.ArtifactDir(), "history.html")); err != nil {
		f.t.Errorf("-conformance.seed=%d: %v (kept with -artifacts)", *killSeed, err)
	}
}

// groupVerb is the effect of a call on the items of a group.
type groupVerb int

const (
	getOne          groupVerb = iota // GetItem, consistent
	addTo                            // UpdateItem ADD
	swap                             // PutItem, if the number is from
	transferBetween                  // TransactWriteItems: subtract from an item, if it has enough, and add to another
	getGroup                         // TransactGetItems of the group
	groupVerbs
)

// groupCall is a call on the items of a group, which are numbers.
type groupCall struct {
	verb               groupVerb
	group, item, other int
	from, value        int
	token              string // of transferBetween
}

func randomCall(rng *rand.Rand) groupCall {
	it := rng.IntN(groupItems)
	return groupCall{
		verb: groupVerb(rng.IntN(int(groupVerbs))), group: rng.IntN(endpointGroups), item: it, other: (it + 1 + rng.IntN(groupItems-1)) % groupItems,
		from: rng.IntN(4), value: 1 + rng.IntN(3), token: fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()),
	}
}

// groupState holds the numbers of a group.
type groupState [groupItems]int

// doGroup applies a call.
func doGroup(g groupState, input any) (groupState, any) {
	switch c := input.(groupCall); c.verb {
	case getOne:
		return g, g[c.item]
	case addTo:
		g[c.item] += c.value
		return g, g[c.item]
	case swap:
		if g[c.item] != c.from {
			return g, false
		}
		g[c.item] = c.value
		return g, true
	case transferBetween:
		if g[c.item] < c.value {
			return g, false
		}
		g[c.item] -= c.value
		g[c.other] += c.value
		return g, true
	case getGroup, groupVerbs:
	}
	return g, g
}

// make makes the call, once.
func (c groupCall) make(ctx context.Context, db *dynamodb.Client) (any, error) {
	key := groupKey(c.group, c.item)
	names := map[string]string{"#n": "n"}
	switch c.verb {
	case getOne:
		out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: groupsTable, Key: key, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		return numberOf(out.Item, "n")
	case addTo:
		out, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: groupsTable, Key: key, UpdateExpression: aws.String("ADD #n :v"), ReturnValues: types.ReturnValueUpdatedNew,
			ExpressionAttributeNames: names, ExpressionAttributeValues: item{":v": n(c.value)},
		})
		if err != nil {
			return nil, err
		}
		return numberOf(out.Attributes, "n")
	case swap:
		key["n"] = n(c.value)
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: groupsTable, Item: key, ConditionExpression: aws.String("#n = :from"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: item{":from": n(c.from)},
		})
		if code(err) == "ConditionalCheckFailedException" {
			return false, nil
		}
		return true, err
	case transferBetween:
		_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(c.token), TransactItems: []types.TransactWriteItem{
			{Update: &types.Update{
				TableName: groupsTable, Key: key, UpdateExpression: aws.String("SET #n = #n - :v"), ConditionExpression: aws.String("#n >= :v"),
				ExpressionAttributeNames: names, ExpressionAttributeValues: item{":v": n(c.value)},
			}},
			{Update: &types.Update{
				TableName: groupsTable, Key: groupKey(c.group, c.other), UpdateExpression: aws.String("ADD #n :v"),
				ExpressionAttributeNames: names, ExpressionAttributeValues: item{":v": n(c.value)},
			}},
		}})
		if refusedByCondition(err) {
			return false, nil
		}
		return true, err
	case getGroup, groupVerbs:
	}
	var gets []types.TransactGetItem
	for i := range groupItems {
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: groupsTable, Key: groupKey(c.group, i)}})
	}
	out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
	if err != nil {
		return nil, err
	}
	var state groupState
	for i, r := range out.Responses {
		if state[i], err = numberOf(r.Item, "n"); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// refusedByCondition reports whether a condition of a transaction has failed.
func refusedByCondition(err error) bool {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == "ConditionalCheckFailed"
	})
}
