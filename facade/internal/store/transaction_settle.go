package store

import (
	"context"
	"errors"
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// settleItem carries out the intent of the transaction id on an item if commit is set, and
// removes it otherwise. Then it applies the item to the indexes, even if another process
// carried out the intent. It does nothing if the table was deleted, or if tableID is not "" and
// the table has another id.
func (tx *transactions) settleItem(ctx context.Context, table, tableID string, key attr.Item, id string, commit bool) error {
	schema := tx.cat.latchOf(table)
	schema.RLock()
	defer schema.RUnlock()
	c, err := tx.cat.lookup(ctx, table)
	if errors.Is(err, ErrTableNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if tableID != "" && c.def.ID != tableID || c.def.Status == tabledef.StatusDeleting {
		return nil
	}
	p, err := c.layout.slot(key)
	if err != nil {
		return err
	}
	for range maxWriteAttempts {
		st, err := tx.rows.readState(ctx, p)
		if err != nil {
			return err
		}
		if owner, ok := st.heldBy(); !ok || owner != id {
			if st.outbox != nil {
				return tx.outbox.drain(ctx, st)
			}
			return nil
		}
		in, _, err := c.layout.parseIntent(st.intent)
		if err != nil {
			return fmt.Errorf("row %q of table %s: %w", p.row, c.layout.table, err)
		}
		if done, err := tx.settleOne(ctx, st, in, commit); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: item %s of table %s", ErrContended, attr.AppendItemJSON(nil, key), table)
}

// settleOne calls settleIntent, and then appends the record of the change to the log.
func (tx *transactions) settleOne(ctx context.Context, st itemState, in intent, commit bool) (bool, error) {
	var changed []*changelog.Write
	done, err := tx.settleIntent(ctx, st, in, commit, &changed)
	tx.logs.Append(ctx, changed)
	return done, err
}

// settleIntent acts like settleItem for an item as read in st, with its intent. It adds the
// record of the change to changed, which the caller appends to the log. It returns false if the
// item has changed since it was read. The caller holds the latch of the table.
func (tx *transactions) settleIntent(ctx context.Context, st itemState, in intent, commit bool, changed *[]*changelog.Write) (settled bool, err error) {
	l := st.slot.l
	defer l.sizes.Wrote()
	defer func() {
		if err == nil {
			err = tx.noteWrite(ctx, l)
		}
	}()
	s, err := tx.planSettlement(st, in, commit)
	if err != nil {
		return false, err
	}
	if l.lag == 0 && !s.index.empty() {
		ahead, err := tx.outbox.enter(ctx, l, s.order, s.index)
		if err != nil {
			return false, err
		}
		s.entered(ahead)
	}
	return tx.commitSettlement(ctx, &s, changed)
}

// settlement is a call that carries out the intent of an item, or removes it.
type settlement struct {
	itemChange
	guard *btpb.RowFilter // the item still has the intent
	// before is the value of the state cell if the item keeps its cells. Then unsure means that the
	// entries of the item may be missing.
	before []byte
	unsure bool
}

// planSettlement returns the settlement of an intent, as read in st. The effect on the indexes must
// precede the call, unless they have a lag.
func (tx *transactions) planSettlement(st itemState, in intent, commit bool) (settlement, error) {
	p, l := st.slot, st.slot.l
	s := settlement{guard: btclient.Chain(btclient.OfColumn(lens.FamilyState, p.state), btclient.Newest(1), btclient.OfValue(st.state.Value))}
	release := func(muts []*btpb.Mutation) []*btpb.Mutation {
		muts = append(muts, btclient.DeleteColumn(lens.FamilyState, p.intent, in.order, in.order+microsPerMilli))
		if p.shared {
			muts = append(muts, btclient.DeleteColumn(lens.FamilyState, p.claim(), in.order, in.order+microsPerMilli))
		}
		return muts
	}
	unsure := st.entering() && !st.entered(tx.marks)
	if !commit || in.kind == intentCheck {
		s.before, s.unsure = st.live(), unsure
		s.itemChange = itemChange{st: st, muts: release(setState(nil, p, st.state, s.before, st.state.Timestamp))}
		return s, nil
	}
	var sets []*btpb.Mutation
	var err error
	if in.item != nil {
		if sets, err = p.sets(in.item, in.order); err != nil {
			return s, err
		}
	}
	muts, change, err := st.replacement(in.item, sets, in.order, unsure)
	if err != nil {
		return s, err
	}
	var state []byte
	if in.item != nil {
		state = tx.rows.newState(stateLive)
	}
	muts = release(setState(muts, p, st.state, state, in.order))
	s.itemChange = itemChange{st: st, updated: in.item, order: in.order, muts: muts, records: l.records(st.item, in.item), index: change}
	s.outbox = !change.empty()
	return s, nil
}

// entered notes that the rows of the indexes are written; ahead is the result of enter. The intent
// serves as the outbox: any process that finds it repeats all this.
func (s *settlement) entered(ahead int64) {
	if ahead <= s.order {
		s.index, s.outbox = indexChange{}, false
	}
}

// commitSettlement makes the call of s. It returns false if the item has changed since it was read.
func (tx *transactions) commitSettlement(ctx context.Context, s *settlement, changed *[]*changelog.Write) (bool, error) {
	p, l := s.st.slot, s.st.slot.l
	done, err := tx.outbox.commitChange(ctx, &s.itemChange, nil, changed, func(ctx context.Context) (bool, error) {
		return tx.bt.CheckAndMutate(ctx, l.table, p.row, s.guard, s.muts, nil)
	})
	return tx.settled(ctx, s, done, err)
}

// settled ends a settlement whose call is made. done and err are the result of the call.
func (tx *transactions) settled(ctx context.Context, s *settlement, done bool, err error) (bool, error) {
	if done && err == nil && s.unsure {
		s.st.state = &layout.Cell{Timestamp: s.st.state.Timestamp, Value: s.before}
		err = tx.outbox.drain(ctx, s.st)
	}
	return done, err
}

// finish settles all items and the token of a decided transaction, and removes its record. It
// continues after ctx ends, since the decision is final.
func (tx *transactions) finish(ctx context.Context, r *transactionRecord) error {
	ctx, cancel := applying(ctx)
	defer cancel()
	if err := tx.settleItems(ctx, r); err != nil {
		return err
	}
	return tx.removeRecord(ctx, r)
}

// removeRecord removes the record of a transaction. None of its intents may remain.
func (tx *transactions) removeRecord(ctx context.Context, r *transactionRecord) error {
	return tx.bt.MutateRow(ctx, tx.o.Catalog, transactionRow(r.id), []*btpb.Mutation{btclient.DeleteRow()})
}

// settleItems settles all items of a decided transaction, and then calls endRequest if the
// transaction has a token.
func (tx *transactions) settleItems(ctx context.Context, r *transactionRecord) error {
	err := tx.lanes.Each(len(r.items), func(i int) error {
		if r.items[i].settled {
			return nil
		}
		return tx.settleNamed(ctx, r, r.items[i])
	})
	if err != nil || r.token == "" {
		return err
	}
	return tx.endRequest(ctx, r)
}

// settleNamed acts like settleItem for the item it of the record r.
func (tx *transactions) settleNamed(ctx context.Context, r *transactionRecord, it transactionItem) error {
	c, err := tx.cat.lookup(ctx, it.table)
	if errors.Is(err, ErrTableNotFound) {
		return nil
	}
	if err != nil || c.def.ID != it.tableID {
		return err
	}
	key, _, ok := tabledef.CutKey(c.def.Key, it.key)
	if !ok {
		return fmt.Errorf("the record of transaction %x names an item that table %s cannot have", r.id, it.table)
	}
	return tx.settleItem(ctx, it.table, it.tableID, key, r.id, r.state == transactionCommitted)
}
