package facade

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/exchange"
	"github.com/tabletop-emu/tabletop/internal/fastserver"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// The servers that carry requests to a Server.
const (
	netHTTP  = "net/http" // of embedders and tests
	fastHTTP = "fasthttp" // of the program
)

var transports = []string{netHTTP, fastHTTP}

// listening serves a handler with a transport, and returns the address.
func listening(tb testing.TB, transport string, handler exchange.Handler) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(tb.Output(), nil))
	var server interface {
		Serve(l net.Listener) error
		Close() error
	}
	if transport == fastHTTP {
		server = fastserver.New(fastserver.Options{Handler: handler, Logger: logger, MaxHeadBytes: 20 << 10, HeadTime: time.Minute})
	} else {
		server = &http.Server{
			Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { exchange.ServeHTTP(handler, w, r) }),
			ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // it returns at Close
	}()
	tb.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return l.Addr().String()
}

// dialed opens a connection that the test closes.
func dialed(tb testing.TB, addr string) net.Conn {
	tb.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// postOver acts like post over a connection to addr.
func postOver(tb testing.TB, addr, operation, body string, change ...func(*http.Request)) (status int, header http.Header, answer []byte) {
	tb.Helper()
	conn, r := dialed(tb, addr), posted(operation, body, change)
	if err := r.Write(conn); err != nil {
		tb.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, resp.Header, answer
}

// TestTransports_Corpus runs testdata/http/*: the input of send is a request as a client writes it,
// the output the answer of both transports, or of each if they differ. Line ends become CRLF; a head
// without a body gets its empty line. Arguments:
//
//	lf        line ends stay LF
//	answers=N the input has several requests
//	end       the input ends with an empty line
//	cut       the client writes no more, and the head is left as it is
//	pad=N     in the input, «pad» stands for N letters a
func TestTransports_Corpus(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	must(t, s, "PutItem", `{"TableName": "plain", "Item": {"id": {"S": "1"}, "v": {"S": "`+strings.Repeat("x", 5000)+`"}}}`)
	addrs := map[string]string{}
	for _, transport := range transports {
		addrs[transport] = listening(t, transport, s.Handler())
	}
	files, err := filepath.Glob("testdata/http/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			if d.Cmd != "send" {
				d.Fatalf(t, "unknown directive")
			}
			answers, pad := 1, 0
			d.MaybeScanArgs(t, "answers", &answers)
			d.MaybeScanArgs(t, "pad", &pad)
			text := strings.ReplaceAll(d.Input, "«pad»", strings.Repeat("a", pad))
			if !strings.Contains(text, "\n\n") && !d.HasArg("cut") || d.HasArg("end") {
				text += "\n\n"
			}
			if !d.HasArg("lf") {
				text = strings.ReplaceAll(text, "\n", "\r\n")
			}
			method, _, _ := strings.Cut(text, " ")
			of := map[string]string{}
			for _, transport := range transports {
				conn := dialed(t, addrs[transport])
				if _, err := io.WriteString(conn, text); err != nil {
					d.Fatalf(t, "%s: %v", transport, err)
				}
				if d.HasArg("cut") {
					if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
						d.Fatalf(t, "%s: %v", transport, err)
					}
				}
				of[transport] = strings.ReplaceAll(answersOn(conn, method, answers), addrs[transport], "«address»")
				_ = conn.Close()
			}
			if of[netHTTP] == of[fastHTTP] {
				return of[netHTTP]
			}
			return netHTTP + ":\n" + of[netHTTP] + fastHTTP + ":\n" + of[fastHTTP]
		})
	}
}

// answersOn returns answers to requests of a method as text, with the headers that tell how to read
// them.
func answersOn(conn net.Conn, method string, answers int) string {
	var out strings.Builder
	in := bufio.NewReader(conn)
	for range answers {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			fmt.Fprintln(&out, "no answer")
			break
		}
		if resp.StatusCode == http.StatusContinue {
			fmt.Fprintln(&out, resp.Proto, resp.Status)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Fprintln(&out, resp.Proto, resp.Status)
		for _, name := range []string{"Content-Type", "Content-Encoding", "Access-Control-Allow-Origin"} {
			if value := resp.Header.Get(name); value != "" {
				fmt.Fprintf(&out, "%s: %s\n", name, value)
			}
		}
		if resp.Close {
			fmt.Fprintln(&out, "Connection: close")
		}
		if coding := resp.Header.Get("Content-Encoding"); coding != "" {
			body = fmt.Appendf(nil, "%d bytes at most: %v", 1000, len(body) <= 1000)
		}
		if len(body) > 0 {
			fmt.Fprintln(&out, strings.TrimSuffix(string(body), "\n"))
		}
		if err != nil {
			fmt.Fprintln(&out, err)
		}
		if resp.Close {
			break
		}
	}
	return out.String()
}

// One hundred clients that announce the largest body, and do not send it, take little memory.
func TestTransports_AnnouncedBodies(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	memory.Alone(t, func(t *testing.T) {
		s := newTestServer(t)
		for _, transport := range transports {
			addr := listening(t, transport, s.Handler())
			before := memory.Live()
			for range 100 {
				conn := dialed(t, addr)
				_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n"+
					"Expect: 100-continue\r\nContent-Length: 16777216\r\n\r\n{")
				if err != nil {
					t.Fatal(err)
				}
				// The server reads the body.
				if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
					t.Fatalf("%s: %q, %v", transport, line, err)
				}
			}
			if took := int64(memory.Live()) - int64(before); took > 12<<20 {
				t.Errorf("%s takes %d KiB", transport, took>>10)
			}
		}
	})
}

// A panic of the observer changes no response, and other requests go on.
func TestTransports_Panic(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(strings.ReplaceAll(transport, "/", "-"), func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t, func(o *Options) {
				o.Observe = func(c *Call) {
					if c.Operation == "Broken" {
						panic("broken")
					}
				}
			})
			addr := listening(t, transport, s.Handler())
			for target, want := range map[string]string{
				"DynamoDB_20120810.Broken":     "HTTP/1.1 400 Bad Request\nContent-Type: application/x-amz-json-1.0\n" + `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"no operation has the target \"DynamoDB_20120810.Broken\""}` + "\n",
				"DynamoDB_20120810.ListTables": "HTTP/1.1 200 OK\nContent-Type: application/x-amz-json-1.0\n" + `{"TableNames":[]}` + "\n",
			} {
				conn := dialed(t, addr)
				_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: "+target+"\r\nContent-Length: 2\r\n\r\n{}")
				if err != nil {
					t.Fatal(err)
				}
				if got := answersOn(conn, http.MethodPost, 1); got != want {
					t.Errorf("%s: %s\nwant %s", target, got, want)
				}
			}
		})
	}
}

// broken is a body that panics.
type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { panic("broken") }

// A panic outside an operation is an internal error that ends the connection.
func TestServer_Panic(t *testing.T) {
	t.Parallel()
	w := post(newTestServer(t), "ListTables", "", func(r *http.Request) { r.Body = io.NopCloser(broken{}) })
	if want := string(ErrorBody(awserr.InternalServerError())); w.Code != http.StatusInternalServerError || w.Body.String() != want || w.Header().Get("Connection") != "close" {
		t.Errorf("%d %v %s, want %s", w.Code, w.Header(), w.Body, want)
	}
}

// BenchmarkHTTP measures the two transports beside each other: GetItems of raw clients on 1 and 8
// connections. x-base is the CPU time with fasthttp, divided by that with net/http; it includes that
// of the clients, which is the same.
func BenchmarkHTTP(b *testing.B) {
	s := newSharingServer(b)
	createPlain(b, s, "bench")
	must(b, s, "PutItem", `{"TableName": "bench", "Item": {"id": {"S": "1"}, "v": {"S": "`+strings.Repeat("v", 1000)+`"}}}`)
	for _, connections := range []int{1, 8} {
		ask := map[string]func(int){}
		for _, transport := range transports {
			addr := listening(b, transport, s.Handler())
			asks, answered := make(chan struct{}), make(chan error)
			b.Cleanup(func() { close(asks) })
			for range connections {
				conn := dialed(b, addr)
				go func() {
					client := rawClient{conn: conn, in: bufio.NewReader(conn)}
					for range asks {
						var err error
						for i := 0; i < 64 && err == nil; i++ {
							err = client.ask()
						}
						answered <- err
					}
				}()
			}
			ask[transport] = func(int) {
				go func() {
					for range connections {
						asks <- struct{}{}
					}
				}()
				for range connections {
					if err := <-answered; err != nil {
						b.Error(err)
					}
				}
			}
		}
		for _, transport := range transports {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(transport, "/", "-"), connections), func(b *testing.B) { cputime.Loop(b, ask[transport]) })
		}
		b.Run(fmt.Sprintf("ratio/%d", connections), func(b *testing.B) { cputime.Ratio(b, ask[fastHTTP], ask[netHTTP]) })
	}
}

// benchRequest is a GetItem as boto3 sends it.
var benchRequest = []byte("POST / HTTP/1.1\r\nHost: localhost:8000\r\nAccept-Encoding: identity\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\n" +
	"Content-Type: application/x-amz-json-1.0\r\nUser-Agent: Boto3/1.40.1 md/Botocore#1.40.1 ua/2.1 os/linux#6.1 md/arch#x86_64 lang/python#3.12.1 md/pyimpl#CPython cfg/retry-mode#legacy Botocore/1.40.1\r\n" +
	"X-Amz-Date: 20261120T120000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=tabletop/20261120/us-east-1/dynamodb/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + strings.Repeat("3e5ab1f6", 8) + "\r\n" +
	"amz-sdk-invocation-id: 5d5a1d1c-1b7c-4f2e-9a55-2f3a3c1e4b6d\r\namz-sdk-request: attempt=1\r\nContent-Length: 50\r\n\r\n" +
	`{"TableName":"bench","Key":{"id":{"S":"1"}      }}`)

// rawClient sends requests without the cost of a client's library.
type rawClient struct {
	conn net.Conn
	in   *bufio.Reader
}

// ask sends a request, and reads its answer.
func (c *rawClient) ask() error {
	if _, err := c.conn.Write(benchRequest); err != nil {
		return err
	}
	status, length := []byte(nil), 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if status == nil {
			status = line
			if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
				return fmt.Errorf("answer %q", line)
			}
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			_, err := c.in.Discard(length)
			return err
		}
	}
}
