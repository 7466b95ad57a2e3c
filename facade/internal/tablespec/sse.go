package tablespec

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// SSESpecification is the encryption settings of a table in a request.
type SSESpecification struct {
	Enabled        *wire.Flag `json:",omitzero"`
	SSEType        *string    `json:",omitzero"`
	KMSMasterKeyID *string    `json:"KMSMasterKeyId,omitzero"`
}

// SSEDescription describes the encryption of a table.
type SSEDescription struct {
	Status          string
	SSEType         string `json:",omitzero"`
	KMSMasterKeyARN string `json:"KMSMasterKeyArn,omitzero"`
}

// ExtraSSE is the key under which tabledef.Table.Extra stores the encryption settings, as
// JSON.
const ExtraSSE = "SSESpecification"

// The types of encryption. Only KMS is served.
const (
	sseAES = "AES256"
	sseKMS = "KMS"
)

// managedKeyAlias names AWS's default key.
const managedKeyAlias = "alias/aws/dynamodb"

// Constraints checks the members against the API model. member is the name of the
// settings in the request.
func (in *SSESpecification) Constraints(v *request.Validator, member string) {
	if in != nil {
		v.Enum(member+".SSEType", in.SSEType, sseAES, sseKMS)
	}
}

// enables reports whether the settings turn encryption on; a type alone does.
func (in *SSESpecification) enables() bool {
	return in.Enabled.IsTrue() || in.Enabled == nil && in.SSEType != nil
}

// check checks members that depend on each other.
func (in *SSESpecification) check() error {
	off := in.Enabled != nil && !in.Enabled.IsTrue()
	switch {
	case off && in.SSEType != nil:
		return awserr.Validation(awserr.MsgSSETypeDisabled)
	case off && in.KMSMasterKeyID != nil:
		return awserr.Validation(awserr.MsgSSEKeyDisabled)
	case in.SSEType != nil && *in.SSEType == sseAES:
		return awserr.Validation(awserr.MsgSSETypeAES)
	case in.SSEType == nil && in.KMSMasterKeyID != nil:
		return awserr.Validation(awserr.MsgSSETypeMissing)
	}
	return nil
}

// Set records the encryption of a new table, for descriptions. A nil specification
// changes nothing.
func (in *SSESpecification) Set(t *tabledef.Table) error {
	if in == nil {
		return nil
	}
	if err := in.check(); err != nil {
		return err
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

// Change changes the encryption of a table. The change appears to be in progress for
// delay. A nil specification changes nothing.
func (in *SSESpecification) Change(t *tabledef.Table, now time.Time, delay time.Duration, region, account string) error {
	if in == nil {
		return nil
	}
	if err := in.check(); err != nil {
		return err
	}
	old := DescribeSSE(t, now, region, account)
	switch key := in.KMSMasterKeyID; {
	case old == nil && !in.enables():
		return awserr.Validation(awserr.MsgSSEUnchanged)
	case old != nil && key != nil && *key == old.KMSMasterKeyARN:
		return awserr.Validation(awserr.MsgSSEKeyUnchanged)
	}
	if t.Encrypting = (tabledef.Encrypting{}); delay > 0 {
		t.Encrypting.Until = now.Add(delay)
	}
	if old != nil {
		t.Encrypting.Key = old.KMSMasterKeyARN
	}
	return in.Set(t)
}

// DescribeSSE describes the encryption of a table. It returns nil for the default
// encryption.
func DescribeSSE(t *tabledef.Table, now time.Time, region, account string) *SSEDescription {
	if now.Before(t.Encrypting.Until) {
		return DescribeSSEChange(t)
	}
	var given SSESpecification
	if json.Unmarshal([]byte(t.Extra[ExtraSSE]), &given) != nil || !given.enables() {
		return nil
	}
	key := managedKeyAlias
	if given.KMSMasterKeyID != nil {
		key = *given.KMSMasterKeyID
	}
	return &SSEDescription{Status: "ENABLED", SSEType: sseKMS, KMSMasterKeyARN: kmsKeyARN(key, region, account)}
}

// DescribeSSEChange describes the encryption that a table had before a change that is
// still in progress.
func DescribeSSEChange(t *tabledef.Table) *SSEDescription {
	d := &SSEDescription{Status: tabledef.StatusUpdating, KMSMasterKeyARN: t.Encrypting.Key}
	if d.KMSMasterKeyARN != "" {
		d.SSEType = sseKMS
	}
	return d
}

// kmsKeyARN returns the ARN of an encryption key that a request names by its ARN, its id or
// an alias.
func kmsKeyARN(key, region, account string) string {
	switch {
	case strings.HasPrefix(key, "arn:"):
		return key
	case key == managedKeyAlias:
		sum := sha256.Sum256([]byte(region + account + key))
		key = fmt.Sprintf("key/%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	case !strings.HasPrefix(key, "alias/"):
		key = "key/" + key
	}
	return "arn:aws:kms:" + region + ":" + account + ":" + key
}
