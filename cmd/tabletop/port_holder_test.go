package main

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

// TestPortHolder: only a socket that listens on the port, at the address or at all, counts.
func TestPortHolder(t *testing.T) {
	t.Parallel()
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	proc := fstest.MapFS{
		"net/tcp": {Data: []byte(head +
			"   0: 0100007F:1F96 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0\n" + // 127.0.0.1:8086
			"   1: 0100007F:1F40 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 222 1 0 100 0 0 10 0\n" + // a connection of port 8000
			"   2: 00000000:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 333 1 0 100 0 0 10 0\n")}, // all addresses, 9090
		"net/tcp6": {Data: []byte(head +
			"   0: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 444 1 0 100 0 0 10 0\n")}, // ::1, 8000
		"7/comm":  {Data: []byte("java\n")},
		"7/fd/3":  {Data: []byte("socket:[111]"), Mode: 0o777 | fs.ModeSymlink},
		"7/fd/4":  {Data: []byte("socket:[333]"), Mode: 0o777 | fs.ModeSymlink},
		"81/comm": {Data: []byte("python3\n")},
		"81/fd/9": {Data: []byte("socket:[444]"), Mode: 0o777 | fs.ModeSymlink},
	}
	for addr, want := range map[listenAddress]string{
		"127.0.0.1:8086":  "process 7 (java)",
		"localhost:8086":  "process 7 (java)",
		"0.0.0.0:8086":    "process 7 (java)",
		":8086":           "process 7 (java)",
		"10.0.0.1:8086":   "",
		"127.0.0.1:8000":  "",
		"[::1]:8000":      "process 81 (python3)",
		"127.0.0.1:9090":  "process 7 (java)",
		"127.0.0.1:65535": "",
	} {
		if got := portHolder(proc, addr); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	if got := portHolder(fstest.MapFS{}, "127.0.0.1:8086"); got != "" {
		t.Errorf("without /proc: %q", got)
	}
}
