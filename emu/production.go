package emu

import (
	"regexp"
	"strings"
	"unicode/utf8"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// zone is the form of the name of a zone, such as us-east1-b.
var zone = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-[a-z]$`)

// within refuses a text of less or more than some characters, with ProductionLimits.
func (l Limits) within(text string, least, most int, field string) error {
	if n := utf8.RuneCountInString(text); l == ProductionLimits && (n < least || n > most) {
		return refusal.Invalid(field, "%q has %d characters; expected %d to %d", text, n, least, most)
	}
	return nil
}

// checkProductionID refuses the id of an instance or a cluster that production does not take.
func (l Limits) checkProductionID(field, id string, least, most int) error {
	if l == ProductionLimits && strings.HasSuffix(id, "-") {
		return refusal.Invalid(field, "%q ends in a hyphen", id)
	}
	return l.within(id, least, most, field)
}

// checkProductionCluster refuses a cluster that production does not take.
func (l Limits) checkProductionCluster(field, id string, c *btapb.Cluster) error {
	if err := l.checkProductionID(field, id, minClusterIDBytes, maxClusterIDBytes); err != nil {
		return err
	}
	if at := resname.Last(c.GetLocation()); l == ProductionLimits && !zone.MatchString(at) {
		return refusal.Invalid(field+".location", "%q is not a zone; expected one such as us-east1-b", at)
	}
	return nil
}

// checkDisplayName refuses the display name of an instance that production does not take.
func (l Limits) checkDisplayName(in *btapb.Instance) error {
	return l.within(in.GetDisplayName(), minDisplayNameRunes, maxDisplayNameRunes, "instance.display_name")
}

// checkDescription refuses the description of an app profile that production does not take.
func (l Limits) checkDescription(p *btapb.AppProfile) error {
	return l.within(p.GetDescription(), 0, maxDescriptionRunes, "app_profile.description")
}
