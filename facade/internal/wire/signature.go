package wire

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/exchange"
)

// Signature Version 4, in the Authorization header or in the query.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
const (
	signatureAlgorithm  = "AWS4-HMAC-SHA256"
	signatureTerminator = "aws4_request"
	signatureService    = "dynamodb"
	signatureTime       = "20060102T150405Z"
	signatureDate       = "20060102"
	signatureSkew       = 15 * time.Minute // the maximum clock difference of client and server
)

// The parameters of a signed query.
const (
	queryAlgorithm     = "X-Amz-Algorithm"
	queryCredential    = "X-Amz-Credential"
	queryDate          = "X-Amz-Date"
	queryExpires       = "X-Amz-Expires"
	querySignature     = "X-Amz-Signature"
	querySignedHeaders = "X-Amz-SignedHeaders"
)

// Caller identifies the signer of a request. It is zero if the request is not signed.
type Caller struct{ AccessKey, Region string }

// CallerOf returns the signer that a request names, without verifying the signature.
func CallerOf(r *exchange.Request) Caller {
	sig, _ := parseSignature(r)
	return sig.caller()
}

// Authenticate checks the signature of a request, given the body as it was sent, and returns the
// signer. secrets maps access keys to secrets. If it is nil, any well-formed signature passes.
// Otherwise the signature must be correct, for any region, and its time must be within 15 minutes
// of one of the clocks; the error shows the first clock. Errors are of type *awserr.Error.
func Authenticate(r *exchange.Request, body []byte, secrets map[string]string, clocks ...time.Time) (Caller, error) {
	sig, err := parseSignature(r)
	if err == nil && secrets != nil {
		err = sig.verify(r, body, secrets, clocks)
	}
	if err != nil {
		return Caller{}, err
	}
	return sig.caller(), nil
}

// signature is the unverified signature of a request.
type signature struct {
	algorithm, credential, signedHeaders, signature string
	date                                            string
	inQuery                                         bool
	expires                                         string // for a signature in the query
}

// parseSignature splits a signature into its parts and rejects one with missing parts.
func parseSignature(r *exchange.Request) (signature, error) {
	header := r.Header.Get("Authorization")
	var query url.Values
	if r.Query != "" {
		query, _ = url.ParseQuery(r.Query) // the readable part
	}
	switch inQuery := query.Has(queryAlgorithm); {
	case header != "" && inQuery:
		return signature{}, awserr.New(awserr.CodeInvalidSignature, awserr.MsgAuthTwice)
	case header == "" && !inQuery:
		return signature{}, awserr.New(awserr.CodeMissingAuthentication, awserr.MsgAuthMissing)
	case inQuery:
		return parseQuerySignature(query)
	}
	algorithm, fields, _ := strings.Cut(header, " ")
	if !strings.HasPrefix(algorithm, "AWS4-") {
		return signature{}, awserr.New(awserr.CodeMissingAuthentication, awserr.MsgAuthMissing)
	}
	sig := signature{algorithm: algorithm, date: cmp.Or(r.Header.Get("X-Amz-Date"), r.Header.Get("Date"))}
	sig.parseFields(fields)
	var missing []string
	for _, part := range []struct{ name, given string }{
		{"Credential", sig.credential}, {"Signature", sig.signature}, {"SignedHeaders", sig.signedHeaders},
	} {
		if part.given == "" {
			missing = append(missing, fmt.Sprintf(awserr.MsgAuthHeaderParameter, part.name))
		}
	}
	if sig.date == "" {
		missing = append(missing, awserr.MsgAuthDate)
	}
	if len(missing) > 0 {
		return signature{}, awserr.New(awserr.CodeIncompleteSignature, "%s", strings.Join(missing, " ")+" Authorization="+header)
	}
	return sig, nil
}

// parseFields reads the fields of an Authorization header: NAME=VALUE, separated by commas,
// spaces or tabs.
func (sig *signature) parseFields(fields string) {
	for fields != "" {
		field := fields
		if end := strings.IndexAny(fields, ", \t"); end >= 0 {
			field, fields = fields[:end], fields[end+1:]
		} else {
			fields = ""
		}
		name, value, ok := strings.Cut(field, "=")
		switch {
		case !ok:
		case name == "Credential":
			sig.credential = value
		case name == "Signature":
			sig.signature = value
		case name == "SignedHeaders":
			sig.signedHeaders = value
		}
	}
}

func parseQuerySignature(query url.Values) (signature, error) {
	var missing []string
	for _, name := range []string{queryAlgorithm, queryCredential, querySignature, querySignedHeaders, queryDate} {
		if query.Get(name) == "" {
			missing = append(missing, fmt.Sprintf(awserr.MsgAuthQueryParameter, name))
		}
	}
	if len(missing) > 0 {
		return signature{}, awserr.New(awserr.CodeIncompleteSignature, "%s", strings.Join(append(missing, awserr.MsgAuthQueryHint), " "))
	}
	return signature{
		algorithm: query.Get(queryAlgorithm), credential: query.Get(queryCredential), signedHeaders: query.Get(querySignedHeaders),
		signature: query.Get(querySignature), date: query.Get(queryDate), inQuery: true, expires: query.Get(queryExpires),
	}, nil
}

// scope returns the parts of a credential: key, date, region, service, terminator.
func (sig signature) scope() []string { return strings.Split(sig.credential, "/") }

// caller returns the signer that the signature names.
func (sig signature) caller() Caller {
	key, rest, _ := strings.Cut(sig.credential, "/")
	_, rest, _ = strings.Cut(rest, "/")
	region, _, _ := strings.Cut(rest, "/")
	return Caller{AccessKey: key, Region: region}
}

// verify checks a signature against the secrets of the known access keys, in AWS's order. It
// accepts any region.
func (sig signature) verify(r *exchange.Request, body []byte, secrets map[string]string, clocks []time.Time) error {
	incomplete := func(format string, args ...any) error {
		return awserr.New(awserr.CodeIncompleteSignature, format, args...)
	}
	invalid := func(format string, args ...any) error {
		return awserr.New(awserr.CodeInvalidSignature, format, args...)
	}
	signed, err := time.Parse(signatureTime, sig.date)
	if err != nil {
		return incomplete(awserr.MsgAuthDateForm, sig.date)
	}
	if err := sig.checkTimes(signed, clocks); err != nil {
		return err
	}
	headers := strings.Split(sig.signedHeaders, ";")
	if !slices.Contains(headers, "host") {
		return invalid(awserr.MsgAuthHost)
	}
	if sig.algorithm != signatureAlgorithm {
		return incomplete(awserr.MsgAuthAlgorithm, sig.algorithm)
	}
	scope := sig.scope()
	if len(scope) != 5 {
		return incomplete(awserr.MsgAuthScope, sig.credential)
	}
	switch day := signed.Format(signatureDate); {
	case scope[1] != day:
		return invalid(awserr.MsgAuthScopeDate, scope[1], day, sig.date)
	case scope[2] == "":
		return invalid(awserr.MsgAuthScopeRegion)
	case scope[3] != signatureService:
		return invalid(awserr.MsgAuthScopeService, signatureService)
	case scope[4] != signatureTerminator:
		return invalid(awserr.MsgAuthScopeTerminator, signatureTerminator, scope[4])
	}
	secret, known := secrets[scope[0]]
	if !known {
		return awserr.New(awserr.CodeUnrecognizedClient, awserr.MsgAuthUnknownKey)
	}
	request := sig.canonicalRequest(r, headers, body)
	if !hmac.Equal([]byte(sig.sign(request, secret, scope)), []byte(sig.signature)) {
		return invalid(awserr.MsgAuthMismatch)
	}
	return nil
}

// Credential is the key, the region and the service with which a request is signed.
type Credential struct{ AccessKey, Secret, Region, Service string }

// Sign signs a request, which must have its final headers and body.
func Sign(r *http.Request, body []byte, now time.Time, c Credential) {
	date := now.UTC().Format(signatureTime)
	r.Header.Set("X-Amz-Date", date)
	headers := []string{"content-type", "host", "x-amz-date", "x-amz-target"}
	scope := []string{c.AccessKey, date[:len(signatureDate)], c.Region, c.Service, signatureTerminator}
	sig := signature{algorithm: signatureAlgorithm, date: date, signedHeaders: strings.Join(headers, ";")}
	r.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s, SignedHeaders=%s, Signature=%s", sig.algorithm, strings.Join(scope, "/"),
		sig.signedHeaders, sig.sign(sig.canonicalRequest(exchange.FromHTTP(r), headers, body), c.Secret, scope)))
}

// checkTimes rejects a signature whose time is outside all clocks' limits, with the first
// clock's error.
func (sig signature) checkTimes(signed time.Time, clocks []time.Time) (err error) {
	for _, now := range clocks {
		of := sig.checkTime(signed, now)
		if of == nil {
			return nil
		}
		err = cmp.Or(err, of)
	}
	return err
}

// checkTime refuses a signature that is too old or from the future.
func (sig signature) checkTime(signed, now time.Time) error {
	now = now.UTC().Truncate(time.Second)
	life := signatureSkew
	if sig.expires != "" {
		seconds, err := strconv.ParseUint(sig.expires, 10, 31)
		if err != nil {
			return awserr.New(awserr.CodeInvalidSignature, awserr.MsgAuthExpires, sig.expires)
		}
		life = time.Duration(seconds) * time.Second
	}
	text := func(format string, bound time.Time, minutes time.Duration) error {
		return awserr.New(awserr.CodeInvalidSignature, format, sig.date, bound.Format(signatureTime), now.Format(signatureTime), strconv.FormatFloat(minutes.Minutes(), 'f', -1, 64))
	}
	switch oldest, newest := now.Add(-life), now.Add(signatureSkew); {
	case signed.Before(oldest):
		return text(awserr.MsgAuthExpired, oldest, life)
	case signed.After(newest):
		return text(awserr.MsgAuthNotYet, newest, signatureSkew)
	}
	return nil
}

// canonicalRequest returns the text that a signature covers.
func (sig signature) canonicalRequest(r *exchange.Request, headers []string, body []byte) string {
	path := cmp.Or(r.Path, "/")
	query, _ := url.ParseQuery(r.Query) // the readable part
	hash := sha256.Sum256(body)
	lines := []string{r.Method, escapeSigned(path, true), sig.canonicalQuery(query)}
	for _, name := range headers {
		lines = append(lines, name+":"+signedHeader(r, name))
	}
	return strings.Join(append(lines, "", sig.signedHeaders, hex.EncodeToString(hash[:])), "\n")
}

// canonicalQuery returns the query without the signature, in order.
func (sig signature) canonicalQuery(query url.Values) string {
	var pairs []string
	for name, values := range query {
		if sig.inQuery && name == querySignature {
			continue
		}
		for _, value := range values {
			pairs = append(pairs, escapeSigned(name, false)+"="+escapeSigned(value, false))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escapeSigned writes every byte except A-Z, a-z, 0-9, -, ., _ and ~ as %XX, and slashes
// unless the text is a path.
func escapeSigned(text string, isPath bool) string {
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		if isWordByte(c) || c == '-' || c == '.' || c == '~' || c == '/' && isPath {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// signedHeader returns the value of a header as a signature covers it.
func signedHeader(r *exchange.Request, name string) string {
	switch {
	case name == "host":
		return r.Host
	case name == "content-length" && r.Header.Get(name) == "":
		return strconv.FormatInt(r.Length, 10)
	}
	values := slices.Clone(r.Header.Values(name))
	for i, value := range values {
		values[i] = strings.Join(strings.Fields(value), " ")
	}
	return strings.Join(values, ",")
}

// sign returns the signature of a canonical request.
func (sig signature) sign(request, secret string, scope []string) string {
	hash := sha256.Sum256([]byte(request))
	text := strings.Join([]string{sig.algorithm, sig.date, strings.Join(scope[1:], "/"), hex.EncodeToString(hash[:])}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range append(scope[1:len(scope):len(scope)], text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}
