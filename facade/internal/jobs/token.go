package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// tokenRowPrefix begins the catalog's rows of client tokens; the kind, "/" and the
	// token's hash follow.
	tokenRowPrefix = "jk/"

	// tokenAge is the lifetime of a client token.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ExportTableToPointInTime.html
	tokenAge = 8 * time.Hour
)

// Token identifies repetitions of a request. The zero value means that the request has no
// token.
type Token struct {
	Text string
	Hash [32]byte // hash of the request's content
}

// tokenText is the record of a token: everything needed to create its job, in case the first
// process did not.
type tokenText struct {
	Hash    []byte          `json:"hash"`
	At      time.Time       `json:"at"`
	ID      string          `json:"id"`
	Request json.RawMessage `json:"request"`
}

func tokenRow(kind, token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return []byte(tokenRowPrefix + kind + "/" + hex.EncodeToString(sum[:]))
}

// readToken returns the record of a token, or nil, and the version of its row. Errors:
// ErrTokenMismatch.
func (r *Runner) readToken(ctx context.Context, kind string, t Token) (*tokenText, []byte, error) {
	there, err := r.read(ctx, r.o.TokenFamily, tokenRow(kind, t.Text))
	if err != nil || there.text == nil {
		return nil, nil, err
	}
	known := &tokenText{}
	if err := json.Unmarshal(there.text, known); err != nil {
		return nil, nil, fmt.Errorf("token of a job of kind %s: %w", kind, err)
	}
	switch {
	case r.o.Now().Sub(known.At) >= tokenAge:
		return nil, there.version, nil
	case !bytes.Equal(known.Hash, t.Hash[:]):
		return nil, nil, ErrTokenMismatch
	}
	return known, there.version, nil
}

// Find returns the job that a token created. found is false if the token has not created one.
// Find returns ErrTokenMismatch if the token was used for a different request.
func (r *Runner) Find(ctx context.Context, kind string, t Token) (j Job, found bool, err error) {
	known, _, err := r.readToken(ctx, kind, t)
	if err != nil || known == nil {
		return j, false, err
	}
	j, err = r.Get(ctx, kind, known.ID)
	if errors.Is(err, ErrNotFound) {
		return j, false, nil
	}
	return j, err == nil, err
}

// remember stores the record of a token unless one exists, and returns the stored one.
func (r *Runner) remember(ctx context.Context, s *Spec) (*tokenText, error) {
	for range maxChanges {
		known, version, err := r.readToken(ctx, s.Kind, s.Token)
		if err != nil || known != nil {
			return known, err
		}
		given := &tokenText{Hash: s.Token.Hash[:], At: r.o.Now(), ID: s.ID, Request: s.Request}
		text, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		if _, ok, err := r.write(ctx, r.o.TokenFamily, tokenRow(s.Kind, s.Token.Text), version, text, ""); ok || err != nil {
			return given, err
		}
	}
	return nil, fmt.Errorf("%w: a token of kind %s", errContended, s.Kind)
}
