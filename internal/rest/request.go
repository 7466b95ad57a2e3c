package rest

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// form is the form of a response that the system parameters of a request choose.
type form struct {
	enumNumbers bool // write enums as numbers
	compact     bool // without line breaks
}

// systemParameters reads and removes the parameters that all methods have. Those that Google uses
// for accounting are ignored; those that would change the response are applied or rejected.
func systemParameters(query url.Values) (form, error) {
	var f form
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(name)
		switch name {
		case "alt", "$alt":
			kind, options, _ := strings.Cut(value, ";")
			f.enumNumbers = options == "enum-encoding=int"
			if kind != "json" || options != "" && !f.enumNumbers {
				return f, status.Errorf(codes.InvalidArgument, "Invalid value %q for query parameter %q; expected json or json;enum-encoding=int", value, name)
			}
		case "prettyPrint", "$prettyPrint":
			pretty, err := strconv.ParseBool(value)
			if err != nil {
				return f, status.Errorf(codes.InvalidArgument, "Invalid value %q for query parameter %q; expected true or false", value, name)
			}
			f.compact = !pretty
		case "fields", "$fields", "callback", "$callback":
			return f, status.Errorf(codes.Unimplemented, "The query parameter %q is not supported; remove it to get the whole response", name)
		case "key", "$key", "access_token", "oauth_token", "quotaUser", "$.xgafv", "$xgafv", "uploadType", "upload_protocol", "$apiVersion", "passwordless":
		default:
			continue
		}
		delete(query, name)
	}
	return f, nil
}

// setParameter merges a query parameter into a message. The path has the JSON or proto names of
// fields, and its last field is a scalar, a list of scalars, or a message with a JSON text, such
// as a duration or a field mask.
func setParameter(m proto.Message, path string, values []string) error {
	names := strings.Split(path, ".")
	desc := m.ProtoReflect().Descriptor()
	fields := make([]protoreflect.FieldDescriptor, len(names))
	for i, name := range names {
		f := desc.Fields().ByJSONName(name)
		if f == nil {
			f = desc.Fields().ByTextName(name)
		}
		last := i == len(names)-1
		if f == nil || f.IsMap() || !last && (f.IsList() || f.Message() == nil) {
			return status.Errorf(codes.InvalidArgument, "Invalid JSON payload received. Unknown name %q: Cannot bind query parameter. Field '%s' could not be found in request message.", path, path)
		}
		fields[i], desc = f, f.Message()
	}
	leaf := fields[len(fields)-1]
	if m := leaf.Message(); m != nil && m.FullName() == "google.protobuf.FieldMask" {
		values = slices.Clone(values)
		for i, v := range values {
			values[i] = camelCase(v) // gcloud has the names of the proto, which Google accepts too
		}
	}
	var content any
	if leaf.IsList() {
		all := make([]any, len(values))
		for i, v := range values {
			all[i] = jsonValue(leaf, v)
		}
		content = all
	} else {
		if len(values) > 1 {
			return status.Errorf(codes.InvalidArgument, "Query parameter %q is set %d times; expected once", path, len(values))
		}
		content = jsonValue(leaf, values[0])
	}
	for _, f := range slices.Backward(fields) {
		content = map[string]any{f.JSONName(): content}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "Query parameter %q: %v", path, err)
	}
	part := m.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(text, part); err != nil {
		return status.Errorf(codes.InvalidArgument, "Invalid value at '%s' (%s), %q", path, kindName(leaf), strings.Join(values, ","))
	}
	proto.Merge(m, part)
	return nil
}

// camelCase turns names in snake case into those of JSON.
func camelCase(names string) string {
	var b strings.Builder
	for i, word := range strings.Split(names, "_") {
		if i > 0 && word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

// jsonValue returns the text of a parameter as encoding/json writes it for a field: a string,
// unless JSON has a form of its own for the field.
func jsonValue(f protoreflect.FieldDescriptor, text string) any {
	wrapper := f.Message() != nil && f.Message().FullName() == "google.protobuf.BoolValue"
	switch {
	case f.Kind() == protoreflect.BoolKind || wrapper:
		if b, err := strconv.ParseBool(text); err == nil { // gcloud writes False
			return b
		}
	case f.Kind() == protoreflect.EnumKind:
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			return n
		}
	}
	return text
}

// kindName returns the name of a field's type that Google's errors use.
func kindName(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return "type.googleapis.com/" + string(f.Message().FullName())
	case f.Enum() != nil:
		return "type.googleapis.com/" + string(f.Enum().FullName())
	}
	return "TYPE_" + strings.ToUpper(f.Kind().String())
}

// readBody reads the JSON of a body into a request, or into its field.
func (o *route) readBody(m proto.Message, body []byte) error {
	if len(body) == 0 {
		return nil
	}
	if o.field != nil {
		m = m.ProtoReflect().Mutable(o.field).Message().Interface()
	}
	if err := protojson.Unmarshal(body, m); err != nil {
		return status.Errorf(codes.InvalidArgument, "Invalid JSON payload received. %s", jsonProblem(err))
	}
	return nil
}

// jsonProblem returns the text of an error of protojson without its prefix, whose space varies.
func jsonProblem(err error) string {
	text := strings.TrimPrefix(err.Error(), "proto:")
	return strings.TrimLeft(text, " \u00a0")
}
