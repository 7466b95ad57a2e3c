package changelog

import (
	"context"
	"encoding/binary"
	"errors"
)

// Registration is what a process says of itself to the others of its catalog.
type Registration struct {
	Epoch   uint64 // which start on the catalog it is; its low bits are the writer's number
	Seat    string // no two processes have it at a time; "": nothing is known of it
	Renewed uint64 // counts the renewals: a process that is alive goes on counting
	Floor   uint64 // each record of the process below it is in the log, and none is to come
	Ceiling uint64 // the process has given out no number from it on
}

// Registry keeps the registrations of the processes of a catalog.
type Registry interface {
	// Put stores the registration of this process: the first time, with create, in any
	// case; later if it is still there.
	Put(ctx context.Context, own Registration, create bool) (ok bool, err error)
	// List returns all registrations, and the greatest ceiling of those that are gone.
	List(ctx context.Context) (all []Registration, past uint64, err error)
}

const registrationVersion = 1

// Append appends the stored form.
func (r Registration) Append(to []byte) []byte {
	to = append(to, registrationVersion)
	for _, n := range []uint64{r.Epoch, r.Renewed, r.Floor, r.Ceiling} {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	return append(to, r.Seat...)
}

// ParseRegistration is the inverse of Append.
func ParseRegistration(data []byte) (r Registration, err error) {
	const numbers = 4
	if len(data) < 1+8*numbers || data[0] != registrationVersion {
		return r, errors.New("a registration of a writer of logs is of no known form: it was written by another program")
	}
	for i, to := range []*uint64{&r.Epoch, &r.Renewed, &r.Floor, &r.Ceiling} {
		*to = binary.BigEndian.Uint64(data[1+8*i:])
	}
	r.Seat = string(data[1+8*numbers:])
	return r, nil
}
