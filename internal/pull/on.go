//go:build race

package pull

import "iter"

// Seq is like iter.Pull, but runs the sequence in a goroutine.
func Seq[V any](seq iter.Seq[V]) (next func() (V, bool), stop func()) {
	p := &pulled[V]{seq: seq, wanted: make(chan bool), values: make(chan V)}
	return p.next, p.stop
}

// Seq2 is like iter.Pull2, but runs the sequence in a goroutine.
func Seq2[K, V any](seq iter.Seq2[K, V]) (next func() (K, V, bool), stop func()) {
	type pair struct {
		k K
		v V
	}
	nextPair, stop := Seq(func(yield func(pair) bool) {
		seq(func(k K, v V) bool { return yield(pair{k, v}) })
	})
	return func() (K, V, bool) {
		p, ok := nextPair()
		return p.k, p.v, ok
	}, stop
}

// pulled is a sequence in a goroutine, which runs only while its caller waits.
type pulled[V any] struct {
	seq           iter.Seq[V]
	started, done bool
	wanted        chan bool // another value, or no more
	values        chan V    // closed at the end
	panicked      any
}

func (p *pulled[V]) run() {
	defer close(p.values)
	defer func() { p.panicked = recover() }()
	stopped := false
	p.seq(func(v V) bool {
		if !stopped {
			p.values <- v
			stopped = !<-p.wanted
		}
		return !stopped
	})
}

func (p *pulled[V]) next() (v V, ok bool) {
	switch {
	case p.done:
		return v, false
	case p.started:
		p.wanted <- true
	default:
		p.started = true
		go p.run()
	}
	if v, ok = <-p.values; !ok {
		p.end()
	}
	return v, ok
}

func (p *pulled[V]) stop() {
	if p.started && !p.done {
		p.wanted <- false
		<-p.values
		p.end()
	}
	p.done = true
}

// end continues a panic of the sequence.
func (p *pulled[V]) end() {
	p.done = true
	if p.panicked != nil {
		panic(p.panicked)
	}
}
