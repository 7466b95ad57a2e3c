// Package resname parses resource names, such as
// projects/P/instances/I/tables/T, and their ids.
package resname

import "strings"

// HasShape reports whether name has the form collection/id/collection/id… with the given
// collections and without empty ids.
func HasShape(name string, collections ...string) bool {
	for i, c := range collections {
		if i > 0 {
			var ok bool
			if name, ok = strings.CutPrefix(name, "/"); !ok {
				return false
			}
		}
		var ok bool
		if name, ok = strings.CutPrefix(name, c+"/"); !ok {
			return false
		}
		n := strings.IndexByte(name, '/')
		if n < 0 {
			n = len(name)
		}
		if n == 0 {
			return false
		}
		name = name[n:]
	}
	return name == ""
}

// Last returns the id at the end of a resource name.
func Last(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// First returns the first n segments of a resource name.
func First(name string, n int) string {
	for i := range len(name) {
		if name[i] == '/' {
			if n--; n == 0 {
				return name[:i]
			}
		}
	}
	return name
}

// TablesOf returns the prefix that the names of an instance's tables share.
func TablesOf(instance string) string { return instance + "/tables/" }

// IsResourceID reports whether id matches [_a-zA-Z0-9][-_.a-zA-Z0-9]*.
func IsResourceID(id string) bool {
	return id != "" && id[0] != '-' && id[0] != '.' && AllBytes(id, IsNameByte)
}

// IsLowerID reports whether id matches [a-z][-a-z0-9]*, the syntax of the ids of instances and
// clusters.
func IsLowerID(id string) bool {
	return id != "" && id[0] >= 'a' && id[0] <= 'z' && AllBytes(id, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	})
}

// IsNameByte reports whether c matches [-_.a-zA-Z0-9].
func IsNameByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '-' || c == '_' || c == '.'
}

// AllBytes reports whether ok returns true for all bytes of s.
func AllBytes(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}
