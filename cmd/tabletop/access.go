package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// off is the listen address of a disabled endpoint.
const off listenAddress = "off"

// listenAddress is HOST:PORT, or "off".
type listenAddress string

func decodeListenAddress(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("HOST:PORT", &text); err != nil {
		return err
	}
	addr, err := parseListenAddress(text)
	if err == nil {
		target.SetString(string(addr))
	}
	return err
}

func parseListenAddress(text string) (listenAddress, error) {
	if listenAddress(text) != off {
		if _, _, err := net.SplitHostPort(text); err != nil {
			return "", fmt.Errorf("%q must be HOST:PORT or off: %w", text, err)
		}
	}
	return listenAddress(text), nil
}

// accessFlags configure access: the reachable addresses, encryption, and credentials of
// clients.
type accessFlags struct {
	Public    bool   `help:"Allow listen addresses that other machines can reach, not only loopback addresses."`
	TLSCert   string `name:"tls-cert" help:"Serve both endpoints over TLS with this certificate and its chain (PEM)." placeholder:"FILE"`
	TLSKey    string `name:"tls-key" help:"Private key for --tls-cert (PEM)." placeholder:"FILE"`
	TokenFile string `name:"token-file" help:"Require every client to present the token in this file. Bigtable clients send it as \"authorization: Bearer TOKEN\"; DynamoDB clients sign with it as the secret of the access key \"tabletop\"." placeholder:"FILE"`
}

// maxTokenBytes bounds a token, since it is sent in a header.
const maxTokenBytes = 4096

// leastTokenBytes is the length above which a random token cannot be guessed.
const leastTokenBytes = 16

// check rejects contradicting flags, and addresses that other machines can reach without
// --public.
func (d *accessFlags) check(bigtable, bigtableREST, dynamoDB listenAddress) error {
	if (d.TLSCert == "") != (d.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key must be given together")
	}
	if d.Public {
		return nil
	}
	for _, endpoint := range []struct {
		flag string
		addr listenAddress
	}{{"--bigtable", bigtable}, {"--bigtable-rest", bigtableREST}, {"--dynamodb", dynamoDB}} {
		if endpoint.addr != "" && endpoint.addr != off && !isLoopback(string(endpoint.addr)) {
			return fmt.Errorf("%s %s can be reached from other machines: add --public to allow that, or listen on 127.0.0.1", endpoint.flag, endpoint.addr)
		}
	}
	return nil
}

// isLoopback reports whether only this machine can reach a HOST:PORT. It does not resolve names
// other than localhost, since their meaning can change.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tls returns the configuration of --tls-cert, or nil if the flag is not set.
func (d *accessFlags) tls() (*tls.Config, error) {
	if d.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(d.TLSCert, d.TLSKey)
	if err != nil {
		return nil, badInput("--tls-cert %s, --tls-key %s: %w", d.TLSCert, d.TLSKey, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// token returns the content of --token-file without its line end, or "".
func (d *accessFlags) token() (string, error) { return readToken("--token-file", d.TokenFile) }

// readToken returns the content of a flag's file without its line end, or "" if no file is
// given.
func readToken(flag, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return "", badInput("%s: %w", flag, err)
	}
	token := strings.TrimRight(string(src), "\r\n")
	switch {
	case token == "":
		return "", badInput("%s: %s is empty; expected a token", flag, file)
	case len(token) > maxTokenBytes:
		return "", badInput("%s: %s has %d bytes; a token can have at most %d", flag, file, len(token), maxTokenBytes)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", badInput("%s: %s must hold a single word of printable ASCII", flag, file)
	}
	return token, nil
}
