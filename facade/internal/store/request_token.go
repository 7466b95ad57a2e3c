package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

const (
	// requestRowPrefix begins the catalog's rows of requests; the token follows.
	requestRowPrefix = "k/"

	// requestFamily has the records of requests with a token. Bigtable's garbage collection
	// empties it, long after the tokens have expired.
	requestFamily = "k"
	requestAge    = 24 * time.Hour

	// requestTokenAge is the lifetime of a ClientRequestToken.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
	requestTokenAge = 10 * time.Minute
)

var requestQualifier = []byte("request")

// Errors of requests with a token.
var (
	ErrTokenMismatch = errors.New("the token was used for another request")
	ErrTokenRunning  = errors.New("the request with this token is still running")
)

// RequestToken identifies the repetitions of a request.
type RequestToken struct {
	Token string   // "" means a request without a token
	Hash  [32]byte // hash of the request's content
}

// These are the states of a request with a token. Its record is the state, the hash of its
// content, the id of the transaction, the time in microseconds (8 bytes), and the result of
// imageSizes.
const (
	requestRunning = 'R'
	requestDone    = 'D'
)

// requestBytes is the length of the record of a request, without the sizes of the images.
const requestBytes = 1 + 32 + transactionIDBytes + 8

// imageSizes encodes, for each change in the order of the request, the size in bytes of the
// larger of its images before and after. A replay computes its consumed capacity from these
// sizes. before returns the image before a change.
func imageSizes(changes []*Change, before func(ch *Change) attr.Item) []byte {
	sizes := make([]byte, 0, 3*len(changes))
	for _, ch := range changes {
		sizes = binary.AppendUvarint(sizes, uint64(max(before(ch).Size(), ch.Updated.Size())))
	}
	return sizes
}

// readImageSizes sets ImageBytes of changes whose request ran before, from the result of
// imageSizes. The records of an earlier version of the program have no sizes, so their items
// count as empty.
func readImageSizes(changes []*Change, sizes []byte) {
	for _, ch := range changes {
		size, n := binary.Uvarint(sizes)
		ch.ImageBytes, sizes = int(size), sizes[max(n, 0):] //nolint:gosec // the size of an item
	}
}

func requestRow(token string) []byte { return []byte(requestRowPrefix + token) }

func (tx *transactions) requestValue(state byte, hash [32]byte, id string, sizes []byte) []byte {
	value := append(append([]byte{state}, hash[:]...), id...)
	value = binary.BigEndian.AppendUint64(value, uint64(tx.nowMicros()))
	return append(value, sizes...)
}

// findRequest looks for an earlier request with the token. done means that the same request
// succeeded; known is its record. Otherwise known is an expired record, or nil. findRequest
// finishes or aborts the transaction of an earlier request that timed out. Errors:
// ErrTokenMismatch, ErrTokenRunning.
func (tx *transactions) findRequest(ctx context.Context, req RequestToken) (known []byte, done bool, err error) {
	for range maxWriteAttempts {
		row, err := tx.bt.ReadRow(ctx, tx.o.Catalog, requestRow(req.Token), btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1)))
		if err != nil || len(row.Cells) == 0 {
			return nil, false, err
		}
		known := row.Cells[0].Value
		if len(known) < requestBytes {
			return nil, false, fmt.Errorf("row %q of table %s is not a request", row.Key, tx.o.Catalog)
		}
		hash, id := known[1:33], string(known[33:33+transactionIDBytes])
		since := int64(binary.BigEndian.Uint64(known[33+transactionIDBytes : requestBytes]))
		if known[0] == requestDone {
			switch {
			case tx.nowMicros()-since >= requestTokenAge.Microseconds():
				return known, false, nil
			case !bytes.Equal(hash, req.Hash[:]):
				return nil, false, ErrTokenMismatch
			}
			return known, true, nil
		}
		if !bytes.Equal(hash, req.Hash[:]) {
			return nil, false, ErrTokenMismatch
		}
		r, err := tx.readTransaction(ctx, id)
		if err != nil {
			return nil, false, err
		}
		switch {
		case r.state == 0:
			// The transaction has ended, or was never recorded.
			if err := tx.forgetRequest(ctx, req.Token, known); err != nil {
				return nil, false, err
			}
		case r.state == transactionPending && !tx.expired(&r):
			return nil, false, ErrTokenRunning
		default:
			if err := tx.recoverTransaction(ctx, &r, true); err != nil {
				return nil, false, err
			}
			if r.state == transactionAborted {
				if err := tx.forgetRequest(ctx, req.Token, known); err != nil {
					return nil, false, err
				}
			}
		}
	}
	return nil, false, ErrTokenRunning
}

// forgetRequest removes the record of a request if its value is still known.
func (tx *transactions) forgetRequest(ctx context.Context, token string, known []byte) error {
	_, err := tx.bt.Replace(ctx, tx.o.Catalog, requestRow(token), requestGuard(known), nil, 0)
	return err
}

// claimRequest records a running request in place of the record known, and sets r.claim. It
// returns false if another request came first.
func (tx *transactions) claimRequest(ctx context.Context, req RequestToken, r *transactionRecord, known []byte) (bool, error) {
	value := tx.requestValue(requestRunning, req.Hash, r.id, r.sizes)
	r.claim = value
	return tx.bt.Replace(ctx, tx.o.Catalog, requestRow(req.Token), requestGuard(known), value, tx.nowMicros())
}

func requestGuard(known []byte) btclient.Guard {
	return btclient.Guard{Family: requestFamily, Qualifier: requestQualifier, Was: known}
}

// endRequest records that the request of r has succeeded if r is committed. Otherwise it
// removes the record of the request.
func (tx *transactions) endRequest(ctx context.Context, r *transactionRecord) error {
	known := r.claim
	if known == nil && r.own {
		return nil // it did not claim the token
	}
	if known == nil {
		row, err := tx.bt.ReadRow(ctx, tx.o.Catalog, requestRow(r.token), btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1)))
		if err != nil || len(row.Cells) == 0 {
			return err
		}
		known = row.Cells[0].Value
		if len(known) < requestBytes || known[0] != requestRunning || string(known[33:33+transactionIDBytes]) != r.id {
			return nil
		}
	}
	if r.state != transactionCommitted {
		return tx.forgetRequest(ctx, r.token, known)
	}
	sizes := r.sizes
	if sizes == nil { // another process began the transaction
		sizes = known[requestBytes:]
	}
	done := tx.requestValue(requestDone, [32]byte(known[1:33]), r.id, sizes)
	_, err := tx.bt.Replace(ctx, tx.o.Catalog, requestRow(r.token), requestGuard(known), done, tx.nowMicros())
	return err
}
