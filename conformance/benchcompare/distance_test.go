package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestLink: data over a link arrives complete and in order, both ways, and the end of one side
// is the end of the other.
func TestLink(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := lis.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := io.Copy(conn, io.LimitReader(conn, 1<<20)); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := newLink(lis.Addr().String(), 2*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(i * i >> 7)
	}
	serving.Go(func() {
		if _, err := conn.Write(sent); err != nil {
			t.Error(err)
		}
	})
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back, equal: %t, %v", len(got), bytes.Equal(got, sent), err)
	}
	serving.Wait()
	for _, close := range []func() error{conn.Close, lis.Close, l.close} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDistanceOperations: each operation succeeds on its tables.
func TestDistanceOperations(t *testing.T) {
	t.Parallel()
	d := &distance{bench: &bench{}}
	l := &changeLoad{load: load{ops: 2, maxTime: time.Hour}, endpoint: serveDynamoDB(t), client: &http.Client{}}
	t.Cleanup(l.client.CloseIdleConnections)
	if err := fillDistance(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for _, o := range distanceOperations {
		for _, table := range o.tables {
			if r := l.run(t.Context(), 1, d.callOf(l, o, table)); r.Errors > 0 {
				t.Errorf("%s: %s", distanceName(o.name, table), r.Note)
			}
		}
	}
}

// TestReplaceBetween: the text around the tables stays, and a file without a place for them is
// an error.
func TestReplaceBetween(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.md")
	for text, want := range map[string]string{
		"a\n" + distanceBegin + "old\n" + distanceEnd + "b\n": "a\n" + distanceBegin + "new\n" + distanceEnd + "b\n",
		"a\n" + distanceBegin: "",
		"a\n" + distanceEnd:   "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := replaceBetween(file, distanceBegin, distanceEnd, "new\n")
		got, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if (err != nil) != (want == "") || err == nil && string(got) != want || err != nil && string(got) != text {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
}
