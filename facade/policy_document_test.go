package facade_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/internal/policy"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Every operation is an action that a policy may name.
func TestPolicy_AllowsAction(t *testing.T) {
	t.Parallel()
	for _, op := range facade.Operations() {
		for _, name := range []string{op.Name, strings.ToLower(op.Name), op.Name[:4] + "*"} {
			if !policy.AllowsAction("dynamodb:" + name) {
				t.Errorf("dynamodb:%s is no action", name)
			}
		}
	}
	for _, name := range []string{"", "dynamodb:", "GetItem", "s3:GetObject", "dynamodb:GetItems", "dynamodb:[", `dynamodb:\`} {
		if policy.AllowsAction(name) {
			t.Errorf("%q is an action", name)
		}
	}
}

// An accepted document is read back in a form that is valid, equivalent and stable; putting
// the stored form of one with a version does not change the revision.
func FuzzPolicyPut(f *testing.F) {
	for _, seed := range []string{
		`{"Statement":{"Effect":"Allow","Principal":{"AWS":["123456789012"]},"Action":"dynamodb:*","Resource":["*"]}}`,
		`{"Version":"2012-10-17","Id":"x","Statement":[{"Sid":"a","Effect":"Deny","NotPrincipal":"*","NotAction":["dynamodb:Get?tem"],"NotResource":"*","Condition":{"Null":{"a<b":["x","y"]}}}]}`,
		`{"Version":7,"Statement":[]}`, `[`, `null`, ``,
	} {
		f.Add(seed)
	}
	of := policy.Resource{ARN: "arn:aws:dynamodb:us-east-1:000000000000:table/t", Table: "t"}
	f.Fuzz(func(t *testing.T, document string) {
		first, err := policy.Put(tabledef.Policy{}, of, document, nil, time.UnixMilli(5))
		if err != nil {
			return
		}
		read := policy.Text(first)
		again, err := policy.Put(first, of, read, nil, time.UnixMilli(9))
		if err != nil {
			t.Fatalf("%q is read as %q: %v", document, read, err)
		}
		if strings.HasPrefix(first.Document, `{"Version":`) != (again == first) {
			t.Errorf("%q of %v becomes %v", document, first, again)
		}
		if policy.Text(again) != read {
			t.Errorf("%q is read as %q, and that as %q", document, read, policy.Text(again))
		}
	})
}
