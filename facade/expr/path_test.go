package expr

import (
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

func TestProjectionOf(t *testing.T) {
	t.Parallel()
	item := decodeItem(t, `{"a":{"M":{"b":{"N":"1"},"c":{"N":"2"}}},"d":{"S":"x"}}`)
	deep := Path{{Name: "a"}, {Name: "b"}}
	for _, c := range []struct {
		name  string
		paths []Path
		want  string
	}{
		{"none", nil, `{}`},
		{"attribute", []Path{AttributePath("d")}, `{"d":{"S":"x"}}`},
		{"deep", []Path{deep}, `{"a":{"M":{"b":{"N":"1"}}}}`},
		{"shorter counts", []Path{deep, AttributePath("a")}, `{"a":{"M":{"b":{"N":"1"},"c":{"N":"2"}}}}`},
		{"shorter first", []Path{AttributePath("a"), deep}, `{"a":{"M":{"b":{"N":"1"},"c":{"N":"2"}}}}`},
	} {
		if got := ProjectionOf(c.paths...).Apply(item).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestPlaceholders_Limits(t *testing.T) {
	t.Parallel()
	big := attr.String(strings.Repeat("x", MaxPlaceholdersBytes-2))
	for _, c := range []struct {
		name   string
		names  map[string]string
		values map[string]attr.Value
		want   string
	}{
		{"none", nil, nil, ""},
		{"as large as can be", nil, map[string]attr.Value{":v": big}, ""},
		{
			"too large",
			map[string]string{"#a": "a"},
			map[string]attr.Value{":v": big},
			"Expression attribute names and values have exceeded the maximum allowed size of 2097152 bytes; size: 2097155",
		},
		{"longest key", map[string]string{"#" + strings.Repeat("a", 254): "a"}, nil, ""},
		{"longest name", map[string]string{"#a": strings.Repeat("a", 65535)}, nil, ""},
		{
			"empty name",
			map[string]string{"#a": ""},
			nil,
			"ExpressionAttributeNames contains invalid value: Empty attribute name for key #a",
		},
		{
			"name too long",
			map[string]string{"#a": strings.Repeat("a", 65536)},
			nil,
			"ExpressionAttributeNames contains invalid value: Attribute name must be between 1 and 65535 bytes long; key: #a",
		},
	} {
		_, err := NewPlaceholders(c.names, c.values)
		if got := message(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestPlaceholders_Nil: a request without placeholders can use nil.
func TestPlaceholders_Nil(t *testing.T) {
	t.Parallel()
	var p *Placeholders
	if err := p.CheckUsed(); err != nil {
		t.Error(err)
	}
	if _, err := ParseUpdate("REMOVE a", p); err != nil {
		t.Error(err)
	}
	for src, want := range map[string]string{
		"a = :v": "Invalid FilterExpression: An expression attribute value used in expression is not defined; attribute value: :v",
		"#a = a": "Invalid FilterExpression: An expression attribute name used in the document path is not defined; attribute name: #a",
	} {
		if _, err := ParseCondition(FilterExpression, src, p); message(err) != want {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}
