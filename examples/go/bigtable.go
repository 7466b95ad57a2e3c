package orders

import (
	"context"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"
)

// Bigtable is a Store in the table orders, whose rows mapping.yaml lays out.
type Bigtable struct{ Table *bigtable.Table }

// family has the cells of an order; in the family _f the DynamoDB endpoint keeps its own.
const family = "o"

// NewBigtable returns a Store.
func NewBigtable(client *bigtable.Client) *Bigtable { return &Bigtable{client.Open("orders")} }

func rowKey(customer, id string) string { return customer + "#" + id }

// Place implements Store.
func (b *Bigtable) Place(ctx context.Context, customer, id string, total int64) error {
	create := bigtable.NewMutation()
	create.Set(family, "status", bigtable.Now(), []byte("open"))
	create.Set(family, "total", bigtable.Now(), []byte(strconv.FormatInt(total, 10)))
	exists := false
	err := b.Table.Apply(ctx, rowKey(customer, id), bigtable.NewCondMutation(bigtable.FamilyFilter(family), nil, create), bigtable.GetCondMutationResult(&exists))
	if err == nil && exists {
		return ErrExists
	}
	return err
}

// Pay implements Store.
func (b *Bigtable) Pay(ctx context.Context, customer, id string) error {
	pay := bigtable.NewMutation()
	pay.Set(family, "status", bigtable.Now(), []byte("paid"))
	isOpen := bigtable.ChainFilters(bigtable.FamilyFilter(family), bigtable.ColumnFilter("status"), bigtable.LatestNFilter(1), bigtable.ValueFilter("open"))
	found := false
	err := b.Table.Apply(ctx, rowKey(customer, id), bigtable.NewCondMutation(isOpen, pay, nil), bigtable.GetCondMutationResult(&found))
	if err == nil && !found {
		return ErrNotOpen
	}
	return err
}

// Of implements Store.
func (b *Bigtable) Of(ctx context.Context, customer string) (all []Order, err error) {
	var wrong error
	err = b.Table.ReadRows(ctx, bigtable.PrefixRange(rowKey(customer, "")), func(row bigtable.Row) bool {
		order := Order{Customer: customer, ID: strings.TrimPrefix(row.Key(), rowKey(customer, ""))}
		for _, cell := range row[family] {
			switch cell.Column {
			case family + ":status":
				order.Status = string(cell.Value)
			case family + ":total":
				order.Total, wrong = strconv.ParseInt(string(cell.Value), 10, 64)
			}
		}
		all = append(all, order)
		return wrong == nil
	}, bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter(family), bigtable.LatestNFilter(1))))
	if err == nil {
		err = wrong
	}
	return all, err
}
