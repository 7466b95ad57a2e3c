package wire

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// discarding discards an answer.
type discarding struct{ header http.Header }

func (d *discarding) Header() http.Header         { return d.header }
func (d *discarding) WriteHeader(int)             {}
func (d *discarding) Write(p []byte) (int, error) { return len(p), nil }

// The cost of each request besides its operation.
func BenchmarkAuthenticate(b *testing.B) {
	b.ReportAllocs()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8000/", http.NoBody)
	r.Header.Set("X-Amz-Date", "20261120T120000Z")
	r.Header.Set("Authorization", signatureAlgorithm+" Credential=tabletop/20261120/us-east-1/dynamodb/aws4_request, "+
		"SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="+strings.Repeat("3e5ab1f6", 8))
	for b.Loop() {
		if who, err := Authenticate(r, nil, nil, testTime); err != nil || who.Region != "us-east-1" {
			b.Fatal(who, err)
		}
	}
}

func BenchmarkResponse_Write(b *testing.B) {
	b.ReportAllocs()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8000/", http.NoBody)
	r.Header.Set("Content-Type", ContentTypeJSON)
	body, random := []byte(strings.Repeat(`{"S":"text"}`, 10)), make([]byte, RequestIDBytes)
	var dates Dates
	for b.Loop() {
		a := NewResponse(r, http.StatusOK, body)
		a.RequestID, a.Date = RequestID(random), dates.At(testTime)
		a.Write(&discarding{http.Header{}}, r)
	}
}
