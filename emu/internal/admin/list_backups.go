package admin

import (
	"context"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// ListBackups returns the backups of a cluster, or of all clusters of an instance, in pages. They
// are in the order that the request names; by default, the newest first.
func (s tableAdminService) ListBackups(_ context.Context, req *btapb.ListBackupsRequest) (*btapb.ListBackupsResponse, error) {
	prefix, err := listPrefix(s.DB, req.GetParent(), "backups")
	if err != nil {
		return nil, err
	}
	all, err := s.backupsUnder(s.DB, prefix)
	if err != nil {
		return nil, err
	}
	now := s.now()
	for i, b := range all {
		all[i] = BackupAt(b, now)
	}
	resp, field, err := listBackups(all, req, maxPageSize)
	if err != nil {
		return nil, refusal.Invalid(field, "%v", err)
	}
	return resp, nil
}

// clustersUnder returns the clusters that the parent of a list selects. The
// cluster "-" selects all of the instance.
func clustersUnder(r Catalog, parent string) ([]*btapb.Cluster, error) {
	if in, all := strings.CutSuffix(parent, "/clusters/-"); all && resname.HasShape(in, "projects", "instances") {
		return ClustersOf(r, in)
	}
	c, err := cluster(r, parent)
	if err != nil {
		return nil, err
	}
	return []*btapb.Cluster{c.Message}, nil
}

// listPrefix returns the common prefix of a collection's resource names in a
// cluster, or in the instance for the cluster "-".
func listPrefix(r Catalog, parent, collection string) (string, error) {
	if err := resname.CheckCluster("parent", parent); err != nil {
		return "", err
	}
	if in, all := strings.CutSuffix(parent, "/clusters/-"); all {
		return in + "/clusters/", CheckInstance(r, in)
	}
	_, err := cluster(r, parent)
	return parent + "/" + collection + "/", err
}
