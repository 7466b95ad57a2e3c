package changelog

import (
	"context"
	"encoding/binary"
	"errors"
)

// Registration is the state of a process for the other processes of its catalog.
type Registration struct {
	Epoch   uint64 // number of its start on the catalog; the low bits are the writer's number
	Slot    string // one process holds it at a time; "": none
	Renewed uint64 // counts renewals; it keeps growing while the process lives
	Floor   uint64 // all records of the process below it, past and future, are in the log
	Ceiling uint64 // all numbers of the process are below it
}

// Registry stores the registrations of the processes of a catalog.
type Registry interface {
	// Put stores the registration of this process: with create in any case, otherwise only if
	// it still exists.
	Put(ctx context.Context, own Registration, create bool) (ok bool, err error)
	// List returns all registrations, and the greatest ceiling of removed ones.
	List(ctx context.Context) (all []Registration, past uint64, err error)
}

const registrationVersion = 1

// Append appends the stored form.
func (r Registration) Append(to []byte) []byte {
	to = append(to, registrationVersion)
	for _, n := range []uint64{r.Epoch, r.Renewed, r.Floor, r.Ceiling} {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	return append(to, r.Slot...)
}

// ParseRegistration is the inverse of Append.
func ParseRegistration(data []byte) (r Registration, err error) {
	const numbers = 4
	if len(data) < 1+8*numbers || data[0] != registrationVersion {
		return r, errors.New("the registration of a writer of logs has an unknown format: another program wrote it")
	}
	for i, to := range []*uint64{&r.Epoch, &r.Renewed, &r.Floor, &r.Ceiling} {
		*to = binary.BigEndian.Uint64(data[1+8*i:])
	}
	r.Slot = string(data[1+8*numbers:])
	return r, nil
}
