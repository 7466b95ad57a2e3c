package facade

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

type tagResourceInput struct {
	ResourceArn *string
	Tags        []request.Tag
}

type untagResourceInput struct {
	ResourceArn *string
	TagKeys     []string
}

// listTagsInput is the request of ListTagsOfResource.
type listTagsInput struct {
	ResourceArn *string
	NextToken   *string
}

// listTagsOutput is the response of ListTagsOfResource, which always has all tags.
type listTagsOutput struct {
	Tags []request.Tag
}

// noOutput is the type of an absent response. Operations without a response body return a nil
// *noOutput.
type noOutput struct{}

// taggedTable returns the table name in the ARN of a request. If the ARN has another account,
// it returns an AccessDeniedException, whether the table exists or not.
func (s *Server) taggedTable(v *validator, arn *string) (string, error) {
	of, err := v.resource(arn)
	switch {
	case err != nil:
		return "", err
	case of.Rest != "":
		return "", awserr.Validation(awserr.MsgTagsARN, *arn)
	case of.Account != s.opts.AccountID:
		return "", awserr.New(awserr.CodeAccessDenied, awserr.MsgNotAuthorized, s.opts.AccountID, v.Operation, *arn)
	}
	return of.Table, nil
}

// resource parses the member ResourceArn. It rejects ARNs that are neither of a table nor of a
// part that a caller may accept, such as a stream.
func (v *validator) resource(arn *string) (of request.ARN, err error) {
	v.Required("ResourceArn", arn != nil)
	if err := v.Constrained(); err != nil {
		return of, err
	}
	if !strings.HasPrefix(*arn, "arn:") {
		return of, awserr.Validation(awserr.MsgARNPrefix, *arn)
	}
	of, ok := request.ParseARN(*arn)
	switch {
	case !ok, strings.HasPrefix(of.Rest, "/backup/"), strings.HasPrefix(of.Rest, "/export/"), strings.HasPrefix(of.Rest, "/import/"):
		return of, awserr.Validation(awserr.MsgARNOfNothing, *arn)
	case strings.HasPrefix(of.Rest, "/index/"):
		return of, awserr.Validation(awserr.MsgARNOfIndex, *arn)
	}
	if !request.IsTableName(of.Table) {
		return of, awserr.Validation(awserr.MsgTagsARN, *arn)
	}
	return of, nil
}

// tagError converts store.ErrTableNotFound to the error of operations on tags. It returns other
// errors unchanged.
func tagError(err error, arn string) error {
	if errors.Is(err, store.ErrTableNotFound) {
		return awserr.ResourceNotFound(awserr.MsgTagsNotFound, arn)
	}
	return err
}

// tagResource adds or replaces tags of a table.
func (s *Server) tagResource(ctx context.Context, in *tagResourceInput) (*noOutput, error) {
	v := s.validator("TagResource")
	v.Required("Tags", in.Tags != nil)
	name, err := s.taggedTable(v, in.ResourceArn)
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, awserr.Validation(awserr.MsgTagsEmpty)
	}
	_, err = s.store.UpdateTable(ctx, name, func(t *tabledef.Table) error {
		merged, err := request.MergeTags(t.Tags, in.Tags)
		t.Tags = merged
		return err
	})
	if err != nil {
		return nil, tagError(err, *in.ResourceArn)
	}
	return nil, nil //nolint:nilnil // see noOutput
}

// untagResource removes tags of a table. Missing tags are not an error.
func (s *Server) untagResource(ctx context.Context, in *untagResourceInput) (*noOutput, error) {
	v := s.validator("UntagResource")
	v.Required("TagKeys", in.TagKeys != nil)
	name, err := s.taggedTable(v, in.ResourceArn)
	if err != nil {
		return nil, err
	}
	if err := request.CheckTagKeys(in.TagKeys); err != nil {
		return nil, err
	}
	_, err = s.store.UpdateTable(ctx, name, func(t *tabledef.Table) error {
		t.Tags = maps.Clone(t.Tags)
		for _, key := range in.TagKeys {
			delete(t.Tags, key)
		}
		return nil
	})
	if err != nil {
		return nil, err // here the service has the text of operations on items
	}
	return nil, nil //nolint:nilnil // see noOutput
}

// listTagsOfResource lists the tags of a table in the order of their keys.
func (s *Server) listTagsOfResource(ctx context.Context, in *listTagsInput) (*listTagsOutput, error) {
	name, err := s.taggedTable(s.validator("ListTagsOfResource"), in.ResourceArn)
	if err != nil {
		return nil, err
	}
	t, err := s.store.Settled(ctx, name)
	if err != nil {
		return nil, tagError(err, *in.ResourceArn)
	}
	out := &listTagsOutput{Tags: []request.Tag{}}
	for _, key := range slices.Sorted(maps.Keys(t.Tags)) {
		out.Tags = append(out.Tags, request.Tag{Key: new(key), Value: new(t.Tags[key])})
	}
	return out, nil
}
