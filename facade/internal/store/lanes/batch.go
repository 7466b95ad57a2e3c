package lanes

// Batch gathers what can be done side by side, and does it whenever there is as much as one Each
// takes. With one lane each is done when it is added. It is for one goroutine.
type Batch[T any] struct {
	lanes *Lanes
	do    func(T) error
	waits []T
}

// NewBatch returns a batch of what do does. What it refuses ends the batch.
func NewBatch[T any](l *Lanes, do func(T) error) *Batch[T] { return &Batch[T]{lanes: l, do: do} }

// Add adds v, and does what has gathered if that is enough.
func (b *Batch[T]) Add(v T) error {
	if !b.lanes.Wide() {
		return b.do(v)
	}
	if b.waits = append(b.waits, v); len(b.waits) < b.lanes.most {
		return nil
	}
	return b.Flush()
}

// Flush does what has gathered.
func (b *Batch[T]) Flush() error {
	err := b.lanes.Each(len(b.waits), func(i int) error { return b.do(b.waits[i]) })
	clear(b.waits)
	b.waits = b.waits[:0]
	return err
}
