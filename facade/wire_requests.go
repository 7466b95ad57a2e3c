package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// request is a request before its operation has looked at it.
type request struct {
	body []byte
	// scanned is what the operation's scan made of the body; nil: it is to be
	// decoded.
	scanned any
}

// readRequest refuses a body that is no JSON object. op is nil where there is no
// such operation.
func (s *Server) readRequest(ctx context.Context, op *operation, body []byte) (r request, err error) {
	r.body = body
	if op == nil {
		return r, checkJSON(body)
	}
	defer s.answerPanic(ctx, op, &err)
	if op.scan != nil {
		r.scanned = op.scan(body)
	}
	if r.scanned == nil {
		err = checkJSON(body)
	}
	return r, err
}

// scannedInput is a request of the operations that clients call most. It reads
// itself from a body that has nothing wrong with it, in one pass and without
// reflection: to check the body and to decode it takes several times as long. It
// is false for all else, which is left to the decoder, as are members that it
// does not know; what it makes of a body is what the decoder would.
type scannedInput interface{ Scan(s *attr.Scanner) bool }

// scanBody reads a body into in, if it can.
func scanBody(body []byte, in scannedInput) bool {
	s := attr.NewScanner(body)
	return in.Scan(s) && s.End()
}

func scanText(s *attr.Scanner, to **string) bool {
	text, ok := s.Text()
	*to = &text
	return ok
}

func scanItem(s *attr.Scanner, to **wireItem) bool {
	item, ok := s.Item()
	*to = &wireItem{Item: item, err: checkNames(item)}
	return ok
}

func scanNames(s *attr.Scanner, to *map[string]string) bool {
	names := map[string]string{}
	*to = names
	return s.Object(func(placeholder string) (ok bool) {
		names[placeholder], ok = s.Text()
		return ok
	})
}

func scanValues(s *attr.Scanner, to *map[string]wireValue) bool {
	values := map[string]wireValue{}
	*to = values
	return s.Object(func(placeholder string) bool {
		value, ok := s.Value()
		values[placeholder] = wireValue{Value: value, err: checkNamesWithin(value)}
		return ok
	})
}

func (in *getItemInput) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		switch name {
		case "TableName":
			return scanText(s, &in.TableName)
		case "Key":
			return scanItem(s, &in.Key)
		case "ConsistentRead":
			value, ok := s.Bool()
			in.ConsistentRead = (*flag)(&value)
			return ok
		case "ReturnConsumedCapacity":
			return scanText(s, &in.ReturnConsumedCapacity)
		case "ProjectionExpression":
			return scanText(s, &in.ProjectionExpression)
		case "ExpressionAttributeNames":
			return scanNames(s, &in.ExpressionAttributeNames)
		default:
			return false
		}
	})
}

func (in *writeInput) scanMember(s *attr.Scanner, name string) bool {
	switch name {
	case "ReturnValues":
		return scanText(s, &in.ReturnValues)
	case "ReturnConsumedCapacity":
		return scanText(s, &in.ReturnConsumedCapacity)
	case "ReturnItemCollectionMetrics":
		return scanText(s, &in.ReturnItemCollectionMetrics)
	case "ReturnValuesOnConditionCheckFailure":
		return scanText(s, &in.ReturnValuesOnConditionCheckFailure)
	case "ConditionExpression":
		return scanText(s, &in.ConditionExpression)
	case "ExpressionAttributeNames":
		return scanNames(s, &in.ExpressionAttributeNames)
	case "ExpressionAttributeValues":
		return scanValues(s, &in.ExpressionAttributeValues)
	default:
		return false
	}
}

func (in *putItemInput) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		switch name {
		case "TableName":
			return scanText(s, &in.TableName)
		case "Item":
			return scanItem(s, &in.Item)
		default:
			return in.scanMember(s, name)
		}
	})
}

func (in *deleteItemInput) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		switch name {
		case "TableName":
			return scanText(s, &in.TableName)
		case "Key":
			return scanItem(s, &in.Key)
		default:
			return in.scanMember(s, name)
		}
	})
}

func (in *updateItemInput) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		switch name {
		case "TableName":
			return scanText(s, &in.TableName)
		case "Key":
			return scanItem(s, &in.Key)
		case "UpdateExpression":
			return scanText(s, &in.UpdateExpression)
		default:
			return in.scanMember(s, name)
		}
	})
}

func (in *batchWriteItemInput) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		switch name {
		case "RequestItems":
			in.RequestItems = map[string][]writeRequest{}
			return s.Object(func(table string) bool {
				writes := []writeRequest{}
				ok := s.List(func() bool {
					writes = append(writes, writeRequest{})
					return writes[len(writes)-1].Scan(s)
				})
				in.RequestItems[table] = writes
				return ok
			})
		case "ReturnConsumedCapacity":
			return scanText(s, &in.ReturnConsumedCapacity)
		case "ReturnItemCollectionMetrics":
			return scanText(s, &in.ReturnItemCollectionMetrics)
		default:
			return false
		}
	})
}

func (w *writeRequest) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		switch name {
		case "PutRequest":
			w.PutRequest = &putRequest{}
			return s.Object(func(name string) bool { return name == "Item" && scanItem(s, &w.PutRequest.Item) })
		case "DeleteRequest":
			w.DeleteRequest = &deleteRequest{}
			return s.Object(func(name string) bool { return name == "Key" && scanItem(s, &w.DeleteRequest.Key) })
		default:
			return false
		}
	})
}

func (in *transactWriteItemsInput) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		switch name {
		case "TransactItems":
			in.TransactItems = []transactWriteItem{}
			return s.List(func() bool {
				in.TransactItems = append(in.TransactItems, transactWriteItem{})
				return in.TransactItems[len(in.TransactItems)-1].Scan(s)
			})
		case "ClientRequestToken":
			return scanText(s, &in.ClientRequestToken)
		case "ReturnConsumedCapacity":
			return scanText(s, &in.ReturnConsumedCapacity)
		case "ReturnItemCollectionMetrics":
			return scanText(s, &in.ReturnItemCollectionMetrics)
		default:
			return false
		}
	})
}

func (w *transactWriteItem) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		a := &transactAction{}
		switch name {
		case actionCheck:
			w.ConditionCheck = a
		case actionPut:
			w.Put = a
		case actionDelete:
			w.Delete = a
		case actionUpdate:
			w.Update = a
		default:
			return false
		}
		return a.Scan(s)
	})
}

func (a *transactAction) Scan(s *attr.Scanner) bool {
	return s.Object(func(name string) bool {
		switch name {
		case "TableName":
			return scanText(s, &a.TableName)
		case "Key":
			return scanItem(s, &a.Key)
		case "Item":
			return scanItem(s, &a.Item)
		case "UpdateExpression":
			return scanText(s, &a.UpdateExpression)
		case "ConditionExpression":
			return scanText(s, &a.ConditionExpression)
		case "ExpressionAttributeNames":
			return scanNames(s, &a.ExpressionAttributeNames)
		case "ExpressionAttributeValues":
			return scanValues(s, &a.ExpressionAttributeValues)
		case "ReturnValuesOnConditionCheckFailure":
			return scanText(s, &a.ReturnValuesOnConditionCheckFailure)
		default:
			return false
		}
	})
}
