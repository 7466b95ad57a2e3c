package limits

import (
	"regexp"
	"strings"
	"unicode/utf8"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// zone matches the name of a zone, such as us-east1-b.
var zone = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-[a-z]$`)

// within rejects a text whose length in characters is outside [least, most].
func within(text string, least, most int, field string) error {
	if n := utf8.RuneCountInString(text); n < least || n > most {
		return refusal.Invalid(field, "%q has %d characters; expected %d to %d", text, n, least, most)
	}
	return nil
}

// CheckProductionID rejects instance and cluster ids that production rejects.
func CheckProductionID(field, id string, least, most int) error {
	if strings.HasSuffix(id, "-") {
		return refusal.Invalid(field, "%q ends in a hyphen", id)
	}
	return within(id, least, most, field)
}

// CheckProductionCluster rejects clusters that production rejects.
func CheckProductionCluster(field, id string, c *btapb.Cluster) error {
	if err := CheckProductionID(field, id, MinClusterIDBytes, MaxClusterIDBytes); err != nil {
		return err
	}
	if at := resname.Last(c.GetLocation()); !zone.MatchString(at) {
		return refusal.Invalid(field+".location", "%q is not a zone; expected one such as us-east1-b", at)
	}
	return nil
}

// CheckDisplayName rejects instance display names that production rejects.
func CheckDisplayName(in *btapb.Instance) error {
	return within(in.GetDisplayName(), MinDisplayNameRunes, MaxDisplayNameRunes, "instance.display_name")
}

// CheckDescription rejects app profile descriptions that production rejects.
func CheckDescription(p *btapb.AppProfile) error {
	return within(p.GetDescription(), 0, MaxDescriptionRunes, "app_profile.description")
}
