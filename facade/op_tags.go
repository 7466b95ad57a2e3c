package facade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// tag is one tag of a table.
type tag struct {
	Key   string
	Value string
}

// tagResourceInput is the request of TagResource.
type tagResourceInput struct {
	ResourceArn *string
	Tags        []tag
}

// untagResourceInput is the request of UntagResource.
type untagResourceInput struct {
	ResourceArn *string
	TagKeys     []string
}

// listTagsInput is the request of ListTagsOfResource.
type listTagsInput struct {
	ResourceArn *string
	NextToken   *string
}

// listTagsOutput is the answer of ListTagsOfResource: always one page.
type listTagsOutput struct {
	Tags []tag
}

// emptyOutput is an answer without members.
type emptyOutput struct{}

// reservedTagPrefix begins the keys that AWS alone gives, in either case.
// Source: developer guide, "Tagging restrictions in DynamoDB".
const reservedTagPrefix = "aws:"

// tagMap adds tags to a copy of those that are there.
func tagMap(current map[string]string, tags []tag) (map[string]string, error) {
	merged := maps.Clone(current)
	if merged == nil {
		merged = map[string]string{}
	}
	for _, t := range tags {
		if n := utf8.RuneCountInString(t.Key); n < 1 || n > maxTagKeyChars {
			return nil, validationError(fmt.Sprintf("%sa tag key must have 1 to %d characters", msgInvalidParameterPrefix, maxTagKeyChars))
		}
		if strings.HasPrefix(strings.ToLower(t.Key), reservedTagPrefix) {
			return nil, validationError(fmt.Sprintf(msgTagReserved, t.Key, reservedTagPrefix))
		}
		if utf8.RuneCountInString(t.Value) > maxTagValueChars {
			return nil, validationError(fmt.Sprintf("%sthe value of tag %s has more than %d characters", msgInvalidParameterPrefix, t.Key, maxTagValueChars))
		}
		merged[t.Key] = t.Value
	}
	if len(merged) > maxTagsPerResource {
		return nil, validationError(fmt.Sprintf(msgTagsTooMany, maxTagsPerResource))
	}
	return merged, nil
}

// taggedTable returns the name of the table that an ARN stands for. Nothing of
// another account is ours to look at, whether it exists or not.
func (s *Server) taggedTable(v *validator, arn *string) (string, error) {
	v.required("ResourceArn", arn != nil)
	if err := v.constrained(); err != nil {
		return "", err
	}
	m := tableARNPattern.FindStringSubmatch(*arn)
	if m == nil {
		return "", validationError(fmt.Sprintf(msgTagsARN, *arn))
	}
	if account := strings.Split(*arn, ":")[4]; account != s.opts.AccountID {
		return "", badRequest(wire.CodeAccessDenied, fmt.Sprintf(msgAccessDenied, s.opts.AccountID, v.operation, *arn))
	}
	return m[1], nil
}

// tagError gives the store's errors the texts of operations on tags.
func tagError(err error, arn string) error {
	if errors.Is(err, store.ErrTableNotFound) {
		return resourceNotFoundError(fmt.Sprintf(msgTagsNotFound, arn))
	}
	return err
}

// tagResource adds or replaces tags of a table.
func (s *Server) tagResource(ctx context.Context, in *tagResourceInput) (*emptyOutput, error) {
	name, err := s.taggedTable(s.validator("TagResource"), in.ResourceArn)
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, validationError(msgTagsEmpty)
	}
	_, err = s.store.UpdateTable(ctx, name, func(t *store.Table) error {
		merged, err := tagMap(t.Tags, in.Tags)
		t.Tags = merged
		return err
	})
	if err != nil {
		return nil, tagError(err, *in.ResourceArn)
	}
	return &emptyOutput{}, nil
}

// untagResource removes tags of a table; those it does not have are no error.
func (s *Server) untagResource(ctx context.Context, in *untagResourceInput) (*emptyOutput, error) {
	name, err := s.taggedTable(s.validator("UntagResource"), in.ResourceArn)
	if err != nil {
		return nil, err
	}
	if len(in.TagKeys) == 0 {
		return nil, validationError(msgTagKeysEmpty)
	}
	_, err = s.store.UpdateTable(ctx, name, func(t *store.Table) error {
		t.Tags = maps.Clone(t.Tags)
		for _, key := range in.TagKeys {
			delete(t.Tags, key)
		}
		return nil
	})
	if err != nil {
		return nil, tagError(err, *in.ResourceArn)
	}
	return &emptyOutput{}, nil
}

// listTagsOfResource lists the tags of a table, by key.
func (s *Server) listTagsOfResource(ctx context.Context, in *listTagsInput) (*listTagsOutput, error) {
	name, err := s.taggedTable(s.validator("ListTagsOfResource"), in.ResourceArn)
	if err != nil {
		return nil, err
	}
	t, err := s.store.TableNow(ctx, name)
	if err != nil {
		return nil, tagError(err, *in.ResourceArn)
	}
	out := &listTagsOutput{Tags: []tag{}}
	for _, key := range sortedKeys(t.Tags) {
		out.Tags = append(out.Tags, tag{Key: key, Value: t.Tags[key]})
	}
	return out, nil
}
