package schema

import (
	"math"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// GCRule validates a rule and converts it. A nil rule, and one with no member
// set, keeps everything. How large it is, is not judged.
func GCRule(field string, r *btapb.GcRule) (engine.GCRule, error) {
	if r.GetRule() == nil {
		return engine.GCRule{}, nil
	}
	return nestedGCRule(field, r, 0)
}

// Bounds of rules, also without limits.
const (
	// maxGCRuleDepth bounds the nesting of rules, also without limits.
	maxGCRuleDepth    = 100
	minGCRuleAgeNanos = 1_000_000 // GcRule.max_age: at least a millisecond
)

func nestedGCRule(field string, r *btapb.GcRule, depth int) (engine.GCRule, error) {
	var out engine.GCRule
	if depth > maxGCRuleDepth {
		return out, refusal.Invalid(field, "nested more than %d deep", maxGCRuleDepth)
	}
	var nested []*btapb.GcRule
	switch k := r.GetRule().(type) {
	case *btapb.GcRule_MaxNumVersions:
		if k.MaxNumVersions < 1 {
			return out, refusal.Invalid(field+".max_num_versions", "%d is less than 1", k.MaxNumVersions)
		}
		return engine.GCRule{Kind: engine.MaxVersions, Versions: int(k.MaxNumVersions)}, nil
	case *btapb.GcRule_MaxAge:
		age := k.MaxAge.AsDuration()
		if !k.MaxAge.IsValid() || age < minGCRuleAgeNanos {
			return out, refusal.Invalid(field+".max_age", "%v is less than a millisecond", age)
		}
		return engine.GCRule{Kind: engine.MaxAge, Age: age}, nil
	case *btapb.GcRule_Union_:
		out.Kind, nested, field = engine.Union, k.Union.GetRules(), field+".union"
	case *btapb.GcRule_Intersection_:
		out.Kind, nested, field = engine.Intersection, k.Intersection.GetRules(), field+".intersection"
	default:
		return out, refusal.Invalid(field, "no rule is set")
	}
	if len(nested) == 0 {
		return out, refusal.Invalid(field, "has no rules")
	}
	for i, n := range nested {
		rule, err := nestedGCRule(field+"."+refusal.Element("rules", i), n, depth+1)
		if err != nil {
			return out, err
		}
		out.Rules = append(out.Rules, rule)
	}
	return out, nil
}

// ToGCRule is the inverse of GCRule.
func ToGCRule(r engine.GCRule) *btapb.GcRule {
	switch r.Kind {
	case engine.MaxVersions:
		return &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: int32(min(r.Versions, math.MaxInt32))}}
	case engine.MaxAge:
		return &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(r.Age)}}
	case engine.Union:
		return &btapb.GcRule{Rule: &btapb.GcRule_Union_{Union: &btapb.GcRule_Union{Rules: toGCRules(r.Rules)}}}
	case engine.Intersection:
		return &btapb.GcRule{Rule: &btapb.GcRule_Intersection_{Intersection: &btapb.GcRule_Intersection{Rules: toGCRules(r.Rules)}}}
	case engine.NoGC:
	}
	return &btapb.GcRule{}
}

func toGCRules(rules []engine.GCRule) []*btapb.GcRule {
	out := make([]*btapb.GcRule, len(rules))
	for i, r := range rules {
		out[i] = ToGCRule(r)
	}
	return out
}
