package tablespec

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// SSESpecification is how a table is to be encrypted.
type SSESpecification struct {
	Enabled        *wire.Flag `json:",omitzero"`
	SSEType        *string    `json:",omitzero"`
	KMSMasterKeyID *string    `json:"KMSMasterKeyId,omitzero"`
}

// SSEDescription is how a table is encrypted.
type SSEDescription struct {
	Status          string
	SSEType         string
	KMSMasterKeyARN string `json:"KMSMasterKeyArn,omitzero"`
}

// ExtraSSE is the name in tabledef.Table.Extra of what the catalog keeps of it, as JSON.
const ExtraSSE = "SSESpecification"

// Constraints checks the members against the model; member is what they are of.
func (in *SSESpecification) Constraints(v *request.Validator, member string) {
	if in != nil {
		v.Enum(member+".SSEType", in.SSEType, "AES256", "KMS")
	}
}

// Set records encryption settings, which are kept and described; nil leaves them.
func (in *SSESpecification) Set(t *tabledef.Table) error {
	if in == nil {
		return nil
	}
	text, err := wire.Encode(in)
	if err != nil {
		return err
	}
	if t.Extra == nil {
		t.Extra = map[string]string{}
	}
	t.Extra[ExtraSSE] = string(text)
	return nil
}

// DescribeSSE describes the encryption of a table, nil for the default one.
func DescribeSSE(t *tabledef.Table, region, account string) *SSEDescription {
	var given SSESpecification
	if json.Unmarshal([]byte(t.Extra[ExtraSSE]), &given) != nil || !given.Enabled.IsTrue() {
		return nil
	}
	d := &SSEDescription{Status: "ENABLED", SSEType: "KMS"}
	if given.SSEType != nil {
		d.SSEType = *given.SSEType
	}
	if given.KMSMasterKeyID != nil {
		d.KMSMasterKeyARN = kmsKeyARN(*given.KMSMasterKeyID, region, account)
	}
	return d
}

// kmsKeyARN returns the ARN of an encryption key that a request names by its
// ARN, its id or an alias.
func kmsKeyARN(key, region, account string) string {
	switch {
	case strings.HasPrefix(key, "arn:"):
		return key
	case !strings.HasPrefix(key, "alias/"):
		key = "key/" + key
	}
	return "arn:aws:kms:" + region + ":" + account + ":" + key
}
