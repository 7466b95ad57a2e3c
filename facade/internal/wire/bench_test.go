package wire

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/exchange"
)

// The cost of each request besides its operation.
func BenchmarkAuthenticate(b *testing.B) {
	b.ReportAllocs()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8000/", http.NoBody)
	r.Header.Set("X-Amz-Date", "20261120T120000Z")
	r.Header.Set("Authorization", signatureAlgorithm+" Credential=tabletop/20261120/us-east-1/dynamodb/aws4_request, "+
		"SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="+strings.Repeat("3e5ab1f6", 8))
	received := exchange.FromHTTP(r)
	for b.Loop() {
		if who, err := Authenticate(received, nil, nil, testTime); err != nil || who.Region != "us-east-1" {
			b.Fatal(who, err)
		}
	}
}

func BenchmarkResponse_Fill(b *testing.B) {
	b.ReportAllocs()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8000/", http.NoBody)
	r.Header.Set("Content-Type", ContentTypeJSON)
	body, random := []byte(strings.Repeat(`{"S":"text"}`, 10)), make([]byte, RequestIDBytes)
	var dates Dates
	received, out := exchange.FromHTTP(r), &exchange.Answer{}
	for b.Loop() {
		a := NewResponse(received, http.StatusOK, body)
		a.RequestID, a.Date = RequestID(random), dates.At(testTime)
		out.Reset()
		a.Fill(out, received)
	}
}
