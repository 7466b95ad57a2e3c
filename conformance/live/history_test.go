package live

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]types.AttributeValue

// digest identifies a state of an item; gone is the state of an absent one.
type digest [16]byte

var gone digest

func digestOf(it item) digest {
	if len(it) == 0 {
		return gone
	}
	sum := sha256.Sum256([]byte(textOf(&types.AttributeValueMemberM{Value: it})))
	return digest(sum[:16])
}

// textOf writes a value, with the members of sets in order.
func textOf(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return strconv.Quote(v.Value)
	case *types.AttributeValueMemberN:
		return "N" + v.Value
	case *types.AttributeValueMemberSS:
		return fmt.Sprintf("SS%q", slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberL:
		var all []string
		for _, x := range v.Value {
			all = append(all, textOf(x))
		}
		return "[" + strings.Join(all, ",") + "]"
	case *types.AttributeValueMemberM:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			all = append(all, name+":"+textOf(v.Value[name]))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	return fmt.Sprintf("%T", v)
}

func str(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }

func num[N ~int | ~int64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// keyOf returns the key of the item with a number. Every fourth item shares its row with nine others.
func keyOf(number int) item {
	if number%4 == 3 {
		return item{"PK": str(fmt.Sprintf("group%06d", number/40)), "SK": str(fmt.Sprintf("part%d", number/4%10))}
	}
	return item{"PK": str(fmt.Sprintf("single%07d", number)), "SK": str("item")}
}

// keyText identifies a key.
func keyText(it item) string {
	return it["PK"].(*types.AttributeValueMemberS).Value + " " + it["SK"].(*types.AttributeValueMemberS).Value
}

// firstItem returns the loaded item with a number.
func firstItem(number int) item {
	r := rand.New(rand.NewPCG(*seed, uint64(number)))
	it := newItem(r, number, 0)
	delete(it, "list")
	return it
}

// newItem draws an item of about 1 KB.
func newItem(r *rand.Rand, number, rev int) item {
	it := keyOf(number)
	it["rev"], it["n"], it["data"] = num(rev), num(r.IntN(100)), str(text(r, 900))
	if r.IntN(2) == 0 {
		it["big"] = bigNumber(r)
	}
	if r.IntN(3) == 0 {
		it["g"], it["gs"] = str(fmt.Sprintf("g%d", r.IntN(50))), str(fmt.Sprintf("%07d", r.IntN(1_000_000)))
	}
	if r.IntN(2) == 0 {
		it["set"] = &types.AttributeValueMemberSS{Value: members(r)}
	}
	if r.IntN(4) == 0 {
		it["list"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{num(r.IntN(10)), str("x")}}
	}
	return it
}

// text returns n letters.
func text(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%016x ", r.Uint64())
	}
	return b.String()[:n]
}

// bigNumber returns a number of 38 digits.
func bigNumber(r *rand.Rand) types.AttributeValue {
	digits := []byte{byte('1' + r.IntN(9))}
	for len(digits) < 37 {
		digits = append(digits, byte('0'+r.IntN(10)))
	}
	return &types.AttributeValueMemberN{Value: string(append(digits, byte('1'+r.IntN(9))))}
}

// members returns up to four of eight members of a set.
func members(r *rand.Rand) []string {
	var all []string
	for _, i := range r.Perm(8)[:1+r.IntN(4)] {
		all = append(all, "m"+strconv.Itoa(i))
	}
	return all
}

// state is a state of an item: the result of a write, from its begin on.
type state struct {
	sum digest
	end time.Time // when the write was acknowledged; the zero time while its outcome is unknown
	off bool      // the write took no effect
}

// record is the history of an item. Its fields are guarded by history.mu, except for number, and for
// now and rev, which only its writer uses.
type record struct {
	number int
	now    item // nil if it is absent
	rev    int

	resting bool // writers leave it alone
	states  []state
	seen    int // the state that the judge has seen
}

// acknowledged is a write whose outcome is known.
type acknowledged struct {
	*record
	state int
	end   time.Time
}

// history has the histories of all items that were written.
type history struct {
	loaded int // items with lower numbers were loaded

	mu      sync.Mutex
	records map[int]*record
	done    []acknowledged // in the order of their ends
	counts  map[string]int // of writes, by kind and outcome
}

// of returns the history of an item.
func (h *history) of(number int) *record {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.records[number]
	if r == nil {
		r = &record{number: number}
		if number < h.loaded {
			r.now = firstItem(number)
		}
		r.states = []state{{sum: digestOf(r.now), end: time.Unix(0, 0)}}
		h.records[number] = r
	}
	return r
}

// begin records that a write has begun, and returns the index of its state.
func (h *history) begin(r *record, next item) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.states = append(r.states, state{sum: digestOf(next)})
	return len(r.states) - 1
}

// end notes the outcome of a write.
func (h *history) end(r *record, at int, kind, outcome string, effect bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[kind+" "+outcome]++
	s := &r.states[at]
	if s.off = !effect; effect {
		s.end = time.Now()
		h.done = append(h.done, acknowledged{r, at, s.end})
	}
}

// rest excludes an item from further writes. It returns false if a write of the item is running.
func (h *history) rest(r *record) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := r.states[len(r.states)-1]
	if !last.off && last.end.IsZero() {
		return false
	}
	r.resting = true
	return true
}

// before returns the newest state that was acknowledged before a time.
func (r *record) before(t time.Time) int {
	for i, s := range slices.Backward(r.states) {
		if !s.off && !s.end.IsZero() && s.end.Before(t) {
			return i
		}
	}
	return 0
}

// find returns the first state from the given one on with a digest; -1 without one.
func (r *record) find(from int, sum digest) int {
	for i, s := range r.states {
		if i >= from && !s.off && s.sum == sum {
			return i
		}
	}
	return -1
}

// recent returns up to n items whose last write before a time ended shortly before it.
func (h *history) recent(t time.Time, n int) (some []*record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, _ := slices.BinarySearchFunc(h.done, t, func(a acknowledged, t time.Time) int { return a.end.Compare(t) })
	for i--; i >= 0 && len(some) < n; i-- {
		if !slices.Contains(some, h.done[i].record) {
			some = append(some, h.done[i].record)
		}
	}
	return some
}

// changed returns the number of items that changed after a state of the history.
func (h *history) changed(from int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[*record]bool{}
	for _, a := range h.done[from:] {
		// The writes of a record end in the order of its states.
		if was := a.before(a.end); a.states[was].sum != a.states[a.state].sum {
			all[a.record] = true
		}
	}
	return len(all)
}

// length returns the number of acknowledged writes.
func (h *history) length() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.done)
}

var consistent = aws.Bool(true)
