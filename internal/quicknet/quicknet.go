// Package quicknet saves CPU time of servers that answer one small request at a time.
//
// A connection of package net announces each system call to Go's scheduler, which then wakes the
// runtime's monitor thread: it takes processors from blocked calls. After each request the process
// is idle, and the thread sleeps again. For a small request that costs a fifth of the CPU time. But
// calls of a socket in non-blocking mode never block. So this package makes them unannounced.
//
// The monitor thread also stops goroutines that run for too long. So it must not sleep while a
// request runs: one call in announceEvery is announced, and a timer ends the thread's sleep.
package quicknet

import (
	"net"
	"sync/atomic"
	"time"
)

// announceEvery bounds the sleep of the monitor thread while connections are used.
const announceEvery = 10 * time.Millisecond

// Listen returns a listener that accepts the connections of l. They act like those of l.
func Listen(l net.Listener) net.Listener {
	q := &listener{Listener: l}
	q.announcer.timer = time.AfterFunc(announceEvery, func() { q.announcer.recent.Store(false) })
	q.announcer.recent.Store(true)
	return q
}

type listener struct {
	net.Listener
	announcer announcer
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return quick(tcp, &l.announcer), nil
	}
	return c, err
}

// announcer selects the calls that are announced.
type announcer struct {
	recent atomic.Bool // the timer runs, which was started beside an announced call
	timer  *time.Timer
}

// due reports whether the next call must be announced. It then starts the timer: a sleeping monitor
// thread only knows the timers that began before its sleep.
func (a *announcer) due() bool {
	if a.recent.Load() || !a.recent.CompareAndSwap(false, true) {
		return false
	}
	a.timer.Reset(announceEvery)
	return true
}
