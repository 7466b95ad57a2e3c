//go:build !linux || race

package quicknet

import "net"

// quick returns tcp: only on Linux is a system call possible without the scheduler. The race detector
// needs package net, which reports to it that a read follows its write.
func quick(tcp *net.TCPConn, _ *announcer) net.Conn { return tcp }
