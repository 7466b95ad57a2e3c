package changelog

import (
	"context"
	"encoding/binary"
	"errors"
)

// Registration is the state that a process publishes to the other processes of its
// catalog.
type Registration struct {
	Epoch   uint64 // number of the process's start on the catalog; its low bits are the writer's number
	Slot    string // name that only one process holds at a time; "" for none
	Renewed uint64 // number of renewals; it grows as long as the process is alive
	Floor   uint64 // all records of the process below this number, past and future, are in the log
	Ceiling uint64 // all numbers of the process are below this one
}

// Registry stores the registrations of all processes of a catalog.
type Registry interface {
	// Put stores the registration of this process. With create it always does so,
	// otherwise only if the registration still exists.
	Put(ctx context.Context, own Registration, create bool) (ok bool, err error)
	// List returns all registrations, and the greatest ceiling of the removed ones.
	List(ctx context.Context) (all []Registration, past uint64, err error)
}

const registrationVersion = 1

// Append appends the stored form of the registration.
func (r Registration) Append(to []byte) []byte {
	to = append(to, registrationVersion)
	for _, n := range []uint64{r.Epoch, r.Renewed, r.Floor, r.Ceiling} {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	return append(to, r.Slot...)
}

// ParseRegistration parses the form that Append writes.
func ParseRegistration(data []byte) (r Registration, err error) {
	const numbers = 4
	if len(data) < 1+8*numbers || data[0] != registrationVersion {
		return r, errors.New("the registration of a log writer has an unknown format: another program wrote it")
	}
	for i, to := range []*uint64{&r.Epoch, &r.Renewed, &r.Floor, &r.Ceiling} {
		*to = binary.BigEndian.Uint64(data[1+8*i:])
	}
	r.Slot = string(data[1+8*numbers:])
	return r, nil
}
