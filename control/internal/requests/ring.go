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
	statement
	rowKey
	request
	response
	parts
)

// entry is a record in its stored form: of fixed size, with its parts next to each other in
// the ring's memory.
type entry struct {
	endpoint string
	start    time.Time
	duration time.Duration
	code     codes.Code               // of an RPC
	status   int                      // status of a DynamoDB answer
	rows     int                      // of ReadRows or ExecuteQuery
	rowsRead int                      // see Record.RowsRead
	bytes    int64                    // size of these rows, or of the DynamoDB answer
	kind     protoreflect.MessageType // of an RPC's request
	cut      bool                     // the request or the answer is incomplete
	stopped  bool                     // see Record.Stopped
	attempt  int32                    // see Record.Attempt
	attempts int32                    // see Record.Attempts
	fault    uint64                   // see Record.Fault
	at       int                      // index of the first part in the memory
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

// Limits of a ring.
const (
	maxRecords = 5000
	maxBytes   = 16 << 20
	// maxMemory is the memory for the parts, in addition to the entries.
	maxMemory   = maxBytes - maxRecords*entryBytes
	firstMemory = 256 << 10
)

// ring keeps the newest entries that fit. Its memory is allocated by doubling, and then
// reused.
type ring struct {
	entries []entry
	first   int // the index of the oldest
	count   int
	memory  []byte
	end     int // after the parts of the newest
	bytes   int // of all parts
}

// add appends e, and returns memory for its parts. The oldest entries make room. An entry has
// at least one part that is not empty, so no two begin at the same index.
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

// free finds n unused bytes. The end of the memory does not split the parts of an entry.
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

// grow doubles the memory, and compacts the parts.
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

// clear removes all entries, and keeps the memory.
func (r *ring) clear() {
	for r.count > 0 {
		r.giveUp()
	}
}

func (r *ring) nth(i int) *entry { return &r.entries[(r.first+i)%maxRecords] }

// unwritten removes the request of the newest entry.
func (r *ring) unwritten() {
	e := r.nth(r.count - 1)
	n := int(e.lengths[request])
	e.lengths[request] = 0
	r.bytes -= n
	r.end -= n
}
