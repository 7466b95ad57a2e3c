// Package orders keeps the orders of a shop, in DynamoDB or in Bigtable.
package orders

import (
	"context"
	"errors"
)

// Order is an order of a customer.
type Order struct {
	Customer, ID string
	Status       string // open or paid
	Total        int64
}

// Errors of a Store.
var (
	ErrExists  = errors.New("the order exists already")
	ErrNotOpen = errors.New("the order does not exist, or is not open")
)

// Store keeps orders. Customers must not contain '#'.
type Store interface {
	// Place adds an open order. Errors: ErrExists.
	Place(ctx context.Context, customer, id string, total int64) error
	// Pay changes an open order to paid. Errors: ErrNotOpen.
	Pay(ctx context.Context, customer, id string) error
	// Of returns the orders of a customer by id.
	Of(ctx context.Context, customer string) ([]Order, error)
}
