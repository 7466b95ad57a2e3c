package requests

import (
	"time"
	"unsafe"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// part is a piece of a record that differs in length.
type part int

const (
	operation part = iota
	requestID
	causeID
	testName
	text
	table
	rowKey
	request
	response
	parts
)

// entry is a record as it is kept: of fixed size, with its parts side by side in the ring's memory.
type entry struct {
	endpoint string
	start    time.Time
	duration time.Duration
	code     codes.Code               // of an RPC
	status   int                      // of an answer of DynamoDB
	rows     int                      // of ReadRows
	bytes    int64                    // in those rows, or of the answer of DynamoDB
	kind     protoreflect.MessageType // of an RPC's request
	cut      bool                     // there was more of the request, or of the answer
	at       int                      // where the first part is in the memory
	lengths  [parts]int32
}

const entryBytes = int(unsafe.Sizeof(entry{}))

func (e *entry) size() int {
	n := 0
	for _, l := range e.lengths {
		n += int(l)
	}
	return n
}

// Bounds of a ring.
const (
	maxRecords = 5000
	maxBytes   = 16 << 20
	// maxMemory is what the parts may take, beside the entries.
	maxMemory   = maxBytes - maxRecords*entryBytes
	firstMemory = 256 << 10
)

// ring keeps the newest entries that there is room for. Its memory is allocated once, or in a few steps that
// double it, and written over for as long as it lives.
type ring struct {
	entries []entry
	first   int // the place of the oldest
	count   int
	memory  []byte
	end     int // behind the parts of the newest
	bytes   int // of all parts
}

// add keeps e behind the newest, and returns memory for its parts. The oldest ones make room. An entry has
// some part that is not empty, so that no two begin at the same place.
func (r *ring) add(e entry) []byte {
	if r.entries == nil {
		r.entries, r.memory = make([]entry, maxRecords), make([]byte, firstMemory)
	}
	if r.count == maxRecords {
		r.giveUp()
	}
	n := e.size()
	at, ok := r.free(n)
	for !ok && len(r.memory) < maxMemory {
		r.grow()
		at, ok = r.free(n)
	}
	for ; !ok; at, ok = r.free(n) {
		r.giveUp()
	}
	e.at = at
	r.entries[(r.first+r.count)%maxRecords] = e
	r.count++
	r.bytes += n
	r.end = at + n
	return r.memory[at:at:r.end]
}

// free finds n bytes that no entry has. Parts of an entry are not divided by the end of the memory.
func (r *ring) free(n int) (at int, ok bool) {
	if r.count == 0 {
		return 0, n <= len(r.memory)
	}
	oldest := r.entries[r.first].at
	if r.end > oldest {
		if n <= len(r.memory)-r.end {
			return r.end, true
		}
		return 0, n < oldest
	}
	return r.end, n < oldest-r.end
}

func (r *ring) giveUp() {
	oldest := &r.entries[r.first]
	r.bytes -= oldest.size()
	*oldest = entry{}
	r.first = (r.first + 1) % maxRecords
	r.count--
}

// grow doubles the memory, and puts the parts side by side.
func (r *ring) grow() {
	memory := make([]byte, 0, min(2*len(r.memory), maxMemory))
	for i := range r.count {
		e := r.nth(i)
		parts := r.memory[e.at : e.at+e.size()]
		e.at = len(memory)
		memory = append(memory, parts...)
	}
	r.end = len(memory)
	r.memory = memory[:cap(memory)]
}

func (r *ring) nth(i int) *entry { return &r.entries[(r.first+i)%maxRecords] }

// unwritten takes back the request of an entry that is the newest.
func (r *ring) unwritten() {
	e := r.nth(r.count - 1)
	n := int(e.lengths[request])
	e.lengths[request] = 0
	r.bytes -= n
	r.end -= n
}
