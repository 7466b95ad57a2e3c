package changelog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Each process that writes logs has a row in the catalog. One row, after all others, has the
// greatest ceiling of removed processes: if a reader misses a process that is removed
// meanwhile, it finds the ceiling there.
const pastRow = "past"

var (
	processQualifier = []byte("process")
	ceilingQualifier = []byte("version")
)

func (lg *Logs) processRow(epoch uint64) []byte {
	return fmt.Appendf(nil, "%s%020d", lg.o.Prefix, epoch)
}

// Put implements Registry.
func (lg *Logs) Put(ctx context.Context, own Registration, create bool) (ok bool, err error) {
	row := lg.processRow(own.Epoch)
	set := []*btpb.Mutation{btclient.SetCell(lg.o.Family, processQualifier, lg.o.Now().UnixMilli()*1000, own.Append(nil))}
	if create {
		return true, lg.bt.MutateRow(ctx, lg.o.Catalog, row, set)
	}
	// No other process sets it, so its existence is enough.
	return lg.bt.CheckAndMutate(ctx, lg.o.Catalog, row, btclient.OfColumn(lg.o.Family, processQualifier), set, nil)
}

// List implements Registry.
func (lg *Logs) List(ctx context.Context) (all []Registration, past uint64, err error) {
	prefix := []byte(lg.o.Prefix)
	read := btclient.Read{Table: lg.o.Catalog, Spans: []layout.Span{cells.Prefixed(prefix)}, Filter: btclient.Newest(1)}
	for row, err := range lg.bt.Read(ctx, read) {
		if err != nil {
			return nil, 0, err
		}
		for _, c := range row.Cells {
			switch {
			case !bytes.Equal(c.Qualifier, processQualifier):
				if len(c.Value) == 8 {
					past = max(past, binary.BigEndian.Uint64(c.Value))
				}
			default:
				r, err := ParseRegistration(c.Value)
				if err != nil {
					return nil, 0, fmt.Errorf("row %q of table %s: %w", row.Key, lg.o.Catalog, err)
				}
				all = append(all, r)
			}
		}
	}
	return all, past, nil
}

// Registered returns the epochs of all registered processes.
func (lg *Logs) Registered(ctx context.Context) (map[uint64]bool, error) {
	all, _, err := lg.List(ctx)
	there := make(map[uint64]bool, len(all))
	for _, r := range all {
		there[r.Epoch] = true
	}
	return there, err
}

// maxRemoveAttempts limits the attempts to store a ceiling that others keep raising.
const maxRemoveAttempts = 64

// remove removes a registration unless it was renewed, and keeps its ceiling. It reports
// whether it removed the registration.
func (lg *Logs) remove(ctx context.Context, r Registration) (removed bool, err error) {
	past := []byte(lg.o.Prefix + pastRow)
	ofColumn := btclient.Chain(btclient.OfColumn(lg.o.Family, ceilingQualifier), btclient.Newest(1))
	for range maxRemoveAttempts {
		row, err := lg.bt.ReadRow(ctx, lg.o.Catalog, past, ofColumn)
		if err != nil {
			return false, err
		}
		set := []*btpb.Mutation{
			btclient.DeleteColumn(lg.o.Family, ceilingQualifier, 0, 0),
			btclient.SetCell(lg.o.Family, ceilingQualifier, lg.o.Now().UnixMilli()*1000, binary.BigEndian.AppendUint64(nil, r.Ceiling)),
		}
		switch {
		case len(row.Cells) == 0:
			_, err = lg.bt.CheckAndMutate(ctx, lg.o.Catalog, past, ofColumn, nil, set)
		case len(row.Cells[0].Value) == 8 && binary.BigEndian.Uint64(row.Cells[0].Value) >= r.Ceiling:
			guard := btclient.Chain(btclient.OfColumn(lg.o.Family, processQualifier), btclient.Newest(1), btclient.OfValue(r.Append(nil)))
			return lg.bt.CheckAndMutate(ctx, lg.o.Catalog, lg.processRow(r.Epoch), guard, []*btpb.Mutation{btclient.DeleteRow()}, nil)
		default:
			guard := btclient.Chain(ofColumn, btclient.OfValue(row.Cells[0].Value))
			_, err = lg.bt.CheckAndMutate(ctx, lg.o.Catalog, past, guard, set, nil)
		}
		if err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("row %q of table %s changed during each of %d attempts to raise its ceiling", past, lg.o.Catalog, maxRemoveAttempts)
}

// Inherit removes the registrations of earlier processes of the same slot. The caller
// must first finish the work in the rows that they marked.
func (lg *Logs) Inherit(ctx context.Context) error {
	if lg.o.Slot == "" {
		return nil
	}
	all, _, err := lg.List(ctx)
	for _, r := range all {
		if err == nil && r.Slot == lg.o.Slot && r.Epoch != lg.epoch {
			_, err = lg.remove(ctx, r)
		}
	}
	return err
}

// Renew renews the registration of this process if there are other processes, and takes
// over the work of dead ones. If now is set, it does so even if the last renewal is
// recent.
func (lg *Logs) Renew(ctx context.Context, now bool) error {
	alone, err := lg.sequence.Renew(ctx, now)
	if err != nil || alone {
		return err
	}
	return lg.company(ctx)
}

// company starts renewing the registration, and takes over the work of dead processes. It is
// called if there are other processes.
func (lg *Logs) company(ctx context.Context) error {
	lg.showLife()
	var errs []error
	for _, r := range lg.sequence.Dead() {
		lg.o.Logger.WarnContext(ctx, "finishing the work of a dead process", "start", r.Epoch)
		err := lg.o.Marks.RecoverOf(ctx, r.Epoch, lg.o.RecoverAll)
		var gone bool
		if err == nil {
			gone, err = lg.remove(ctx, r)
		}
		if gone { // otherwise it lives, or another process was first; the next list shows which
			lg.sequence.Buried(r)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// showLife starts keepBeating once.
func (lg *Logs) showLife() { lg.beat.Do(func() { lg.beating.Go(lg.keepBeating) }) }

// keepBeating renews the registration until the logs are closed, since others wait for it.
func (lg *Logs) keepBeating() {
	ticker := time.NewTicker(Beat)
	defer ticker.Stop()
	for {
		select {
		case <-lg.o.Life.Done():
			return
		case <-ticker.C:
			if err := lg.Renew(lg.o.Life, false); err != nil && lg.o.Life.Err() == nil {
				lg.o.Logger.Warn("renewing the registration of this process", "error", err)
			}
		}
	}
}

// Close appends pending records and removes the registration. If it cannot finish the
// work, another process or a later one does. The context Life must have ended.
func (lg *Logs) Close(ctx context.Context) error {
	lg.beating.Wait()
	defer lg.Disappear(ctx)
	if err := errors.Join(lg.Settle(ctx), lg.Clear(ctx, 0)); err != nil {
		return err
	}
	own, ok := lg.sequence.Leave()
	if !ok {
		return nil
	}
	_, err := lg.remove(ctx, own)
	return err
}
