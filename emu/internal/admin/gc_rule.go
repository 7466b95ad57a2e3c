package admin

import (
	"math"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// gcRule validates and converts a rule. A nil rule, and a rule without a
// member, keeps all cells.
func gcRule(m limits.Mode, field string, r *btapb.GcRule) (engine.GCRule, error) {
	if err := m.Check(proto.Size(r), limits.MaxGCRuleBytes, field, "bytes"); err != nil {
		return engine.GCRule{}, err
	}
	if r.GetRule() == nil {
		return engine.GCRule{}, nil
	}
	return nestedGCRule(field, r, 0)
}

// The bounds of rules apply without limits too.
const (
	// maxGCRuleDepth is the maximum nesting of rules.
	maxGCRuleDepth    = 100
	minGCRuleAgeNanos = 1_000_000 // GcRule.max_age: at least a millisecond
)

func nestedGCRule(field string, r *btapb.GcRule, depth int) (engine.GCRule, error) {
	var out engine.GCRule
	if depth > maxGCRuleDepth {
		return out, refusal.Invalid(field, "nested more than %d levels deep", maxGCRuleDepth)
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
			return out, refusal.ShortAge(field + ".max_age")
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
		return out, refusal.Invalid(field, "must specify at least one rule")
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

// toGCRule is the inverse of gcRule.
func toGCRule(r engine.GCRule) *btapb.GcRule {
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
		out[i] = toGCRule(r)
	}
	return out
}

// never is the collection age of cells that are never collected.
const never = time.Duration(math.MaxInt64)

// maxRelaxation is the longest time by which ignore_warnings may extend a rule. Source:
// Terraform, google_bigtable_gc_policy.ignore_warnings.
const maxRelaxation = 90 * 24 * time.Hour

// relaxation returns how much longer than the old rule a new rule may keep cells in an
// instance with the given number of clusters. With several clusters, some may have
// collected the cells already.
func relaxation(clusters int, ignoreWarnings bool) time.Duration {
	switch {
	case clusters < 2:
		return never
	case ignoreWarnings:
		return maxRelaxation
	}
	return 0
}

// checkRelaxed returns an error if the new rule of a family keeps cells longer than the
// old rule by more than most. It compares only collection by age, not by the number of
// cells alone.
func checkRelaxed(family string, from, to engine.GCRule, most time.Duration) error {
	for _, newer := range append(countsOf(from, countsOf(to, nil)), 0) {
		was, is := collectedAt(from, newer), collectedAt(to, newer)
		if was == 0 || was == never || is <= was || most == never {
			continue
		}
		if is == never || is-was > most {
			return refusal.RelaxedGC(family)
		}
	}
	return nil
}

// countsOf appends the version counts in r, unsorted, to `to`. Between two consecutive counts,
// the rule treats all cells of an age alike.
func countsOf(r engine.GCRule, to []int) []int {
	if r.Kind == engine.MaxVersions {
		to = append(to, r.Versions)
	}
	for _, n := range r.Rules {
		to = countsOf(n, to)
	}
	return to
}

// collectedAt returns the age from which a rule collects a cell that has the given number
// of newer cells in its column.
func collectedAt(r engine.GCRule, newer int) time.Duration {
	switch r.Kind {
	case engine.MaxAge:
		return r.Age
	case engine.MaxVersions:
		if newer >= r.Versions {
			return 0
		}
	case engine.Union:
		age := never
		for _, n := range r.Rules {
			age = min(age, collectedAt(n, newer))
		}
		return age
	case engine.Intersection:
		age := time.Duration(0)
		for _, n := range r.Rules {
			age = max(age, collectedAt(n, newer))
		}
		return age
	case engine.NoGC:
	}
	return never
}
