package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"golang.org/x/oauth2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/credentials/oauth"
	"google.golang.org/grpc/status"
)

// certificate writes a certificate of 127.0.0.1 and its key, and returns their
// files and a pool that trusts it.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Unix(1<<32, 0),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cert, key = write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER)
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pool
}

// TestServe_Endpoints secures both endpoints, with TLS and a token.
func TestServe_Endpoints(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ports := filepath.Join(t.TempDir(), "ports.json")
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0",
		"--tls-cert", cert, "--tls-key", key, "--token-file", tokenFile, "--port-file", ports)
	text, err := os.ReadFile(ports)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Bigtable, DynamoDB string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}

	secure := credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	for _, c := range []struct {
		name   string
		secure credentials.TransportCredentials
		token  string
		want   codes.Code
	}{
		{"token", secure, "open-sesame", codes.OK},
		{"wrong token", secure, "open-sesam", codes.Unauthenticated},
		{"no token", secure, "", codes.Unauthenticated},
		{"plain text", insecure.NewCredentials(), "", codes.Unavailable},
	} {
		options := []grpc.DialOption{grpc.WithTransportCredentials(c.secure)}
		if c.token != "" {
			options = append(options, grpc.WithPerRPCCredentials(oauth.TokenSource{
				TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: c.token}),
			}))
		}
		conn, err := grpc.NewClient("passthrough:///"+found.Bigtable, options...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = btapb.NewBigtableTableAdminClient(conn).ListTables(t.Context(), &btapb.ListTablesRequest{Parent: parent})
		if status.Code(err) != c.want {
			t.Errorf("Bigtable, %s: %v, want %v", c.name, err, c.want)
		}
		_ = conn.Close()
	}

	url := s.env["AWS_ENDPOINT_URL_DYNAMODB"]
	if url != found.DynamoDB {
		t.Errorf("the port file has %s, the output %s", found.DynamoDB, url)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		t.Fatalf("DynamoDB at %s: %v", url, err)
	}
	_ = answer.Body.Close()
	if !strings.HasPrefix(url, "https://") || answer.StatusCode != http.StatusOK {
		t.Errorf("DynamoDB's health at %s: %s", url, answer.Status)
	}
	for _, secret := range []string{"open-sesame", "open-sesam"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-amz-json-1.0")
		request.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
		sum := sha256.Sum256([]byte("{}"))
		err = v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: tokenKeyID, SecretAccessKey: secret},
			request, hex.EncodeToString(sum[:]), "dynamodb", "us-east-1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if ok := answer.StatusCode == http.StatusOK; ok != (secret == "open-sesame") {
			t.Errorf("DynamoDB, signed with %q: %s %s", secret, answer.Status, body)
		}
	}
	if secret, printed := s.env["AWS_SECRET_ACCESS_KEY"]; printed {
		t.Errorf("the secret key %q is printed", secret)
	}
	if host, printed := s.env["BIGTABLE_EMULATOR_HOST"]; printed {
		t.Errorf("BIGTABLE_EMULATOR_HOST=%s is printed, whose clients speak plain text", host)
	}
	if code := s.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}
