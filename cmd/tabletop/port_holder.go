package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path"
	"strconv"
	"strings"
)

// portHolder describes the process that listens on an address, from the files of Linux's /proc.
// It returns "" on other systems, and for processes of other users.
func portHolder(proc fs.FS, addr listenAddress) string {
	host, port, err := net.SplitHostPort(string(addr))
	number, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil {
		return ""
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	wanted, _ := netip.ParseAddr(host) // a name or none: any address counts
	inodes := map[string]bool{}
	for _, file := range []string{"net/tcp", "net/tcp6"} {
		text, _ := fs.ReadFile(proc, file) // missing on other systems
		for line := range bytes.Lines(text) {
			if inode := listener(string(line), wanted, uint16(number)); inode != "" {
				inodes["socket:["+inode+"]"] = true
			}
		}
	}
	if len(inodes) == 0 {
		return ""
	}
	links, _ := fs.Glob(proc, "[0-9]*/fd/*") // without those of other users
	for _, link := range links {
		if target, err := fs.ReadLink(proc, link); err != nil || !inodes[target] {
			continue
		}
		process := path.Dir(path.Dir(link))
		name, _ := fs.ReadFile(proc, process+"/comm")
		return fmt.Sprintf("process %s (%s)", process, strings.TrimSpace(string(name)))
	}
	return ""
}

// listener returns the inode in a line of /proc/net/tcp, if it is a socket that listens on the
// port, at the wanted address or at all addresses. An invalid address matches all.
func listener(line string, wanted netip.Addr, port uint16) string {
	const local, state, inode, listens = 1, 3, 9, "0A" // columns, and TCP_LISTEN
	fields := strings.Fields(line)
	if len(fields) <= inode || fields[state] != listens {
		return ""
	}
	host, hexPort, _ := strings.Cut(fields[local], ":")
	if n, err := strconv.ParseUint(hexPort, 16, 16); err != nil || uint16(n) != port {
		return ""
	}
	var raw []byte
	for ; len(host) >= 8; host = host[8:] { // words in the order of the machine
		n, err := strconv.ParseUint(host[:8], 16, 32)
		if err != nil {
			return ""
		}
		raw = binary.NativeEndian.AppendUint32(raw, uint32(n))
	}
	at, _ := netip.AddrFromSlice(raw)
	if at = at.Unmap(); wanted.IsValid() && !wanted.IsUnspecified() && !at.IsUnspecified() && at != wanted.Unmap() {
		return ""
	}
	return fields[inode]
}
