package changelog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// The processes that write logs have a row each in the catalog, and those that are gone
// have one together, which is behind all others: who reads them in order and misses
// one that goes meanwhile, finds its ceiling there.
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
	// Nobody else sets it: that it is there is enough.
	return lg.bt.CheckAndMutate(ctx, lg.o.Catalog, row, btclient.OfColumn(lg.o.Family, processQualifier), set, nil)
}

// List implements Registry.
func (lg *Logs) List(ctx context.Context) (all []Registration, past uint64, err error) {
	prefix := []byte(lg.o.Prefix)
	read := btclient.Read{Table: lg.o.Catalog, Spans: []layout.Span{{Start: prefix, End: cells.PrefixEnd(prefix)}}, Filter: btclient.Newest(1)}
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

// Registered returns which starts on the catalog have a registration.
func (lg *Logs) Registered(ctx context.Context) (map[uint64]bool, error) {
	all, _, err := lg.List(ctx)
	there := make(map[uint64]bool, len(all))
	for _, r := range all {
		there[r.Epoch] = true
	}
	return there, err
}

// maxRemoveAttempts bounds the attempts to note a ceiling that others keep raising.
const maxRemoveAttempts = 64

// remove takes a registration away, unless it was renewed, and keeps its ceiling. It
// reports whether it did.
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
	return false, errors.New("the ceiling of writers of logs that are gone changes all the time")
}

// Inherit takes over what earlier processes of the same seat left. What their marks
// tell of has been worked off.
func (lg *Logs) Inherit(ctx context.Context) error {
	if lg.o.Seat == "" {
		return nil
	}
	all, _, err := lg.List(ctx)
	for _, r := range all {
		if err == nil && r.Seat == lg.o.Seat && r.Epoch != lg.epoch {
			_, err = lg.remove(ctx, r)
		}
	}
	return err
}

// Renew tells other processes, if there are any, how far this one is, and takes over what
// those that are dead left. With now it does so though it was just done.
func (lg *Logs) Renew(ctx context.Context, now bool) error {
	alone, err := lg.sequence.Renew(ctx, now)
	if err != nil || alone {
		return err
	}
	return lg.company(ctx)
}

// company is what is to be done where there are other processes.
func (lg *Logs) company(ctx context.Context) error {
	lg.showLife()
	var errs []error
	for _, r := range lg.sequence.Dead() {
		lg.o.Logger.WarnContext(ctx, "a process that wrote changes is gone; what it left is finished", "start", r.Epoch)
		err := lg.o.Marks.RecoverOf(ctx, r.Epoch, lg.o.RecoverAll)
		var gone bool
		if err == nil {
			gone, err = lg.remove(ctx, r)
		}
		if gone { // else it lives, or another process was first, of which the next list tells
			lg.sequence.Buried(r)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// showLife begins to renew the registration, if that has not begun.
func (lg *Logs) showLife() { lg.beat.Do(func() { lg.beating.Go(lg.keepBeating) }) }

// keepBeating renews the registration until the logs are closed: whatever this process
// does, others wait for it.
func (lg *Logs) keepBeating() {
	ticker := time.NewTicker(Beat)
	defer ticker.Stop()
	for {
		select {
		case <-lg.o.Life.Done():
			return
		case <-ticker.C:
			if err := lg.Renew(lg.o.Life, false); err != nil && lg.o.Life.Err() == nil {
				lg.o.Logger.Warn("telling other processes how far the logs are", "error", err)
			}
		}
	}
}

// Close appends what is left, and ends the registration. What it must leave is finished
// by another process, or a later one. Life has ended.
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
