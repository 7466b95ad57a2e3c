package emu

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/engine"
)

// ProductionLimits rejects the short names of tests on create and update, as production does.
func TestProductionLimits(t *testing.T) {
	t.Parallel()
	e := newEnvWith(t, Options{Limits: ProductionLimits}, engine.Options{})
	create := func(id, display, cluster, zone string) error {
		req := &btapb.CreateInstanceRequest{
			Parent: "projects/p", InstanceId: id, Instance: &btapb.Instance{DisplayName: display},
			Clusters: map[string]*btapb.Cluster{cluster: nodes(zone, 1)},
		}
		_, err := e.instances().CreateInstance(e.ctx(), req)
		return err
	}
	const zone = "us-east1-b"
	for name, err := range map[string]error{
		"instance of 5":       create("abcde", "Display", "cluster-1", zone),
		"instance with a -":   create("abcdef-", "Display", "cluster-1", zone),
		"cluster of 5":        create("abcdef", "Display", "abcde", zone),
		"cluster of 31":       create("abcdef", "Display", strings.Repeat("c", 31), zone),
		"cluster with a -":    create("abcdef", "Display", "cluster-", zone),
		"display name of 3":   create("abcdef", "Dis", "cluster-1", zone),
		"display name of 31":  create("abcdef", strings.Repeat("é", 31), "cluster-1", zone),
		"location not a zone": create("abcdef", "Display", "cluster-1", "z"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantCode(t, err, codes.InvalidArgument)
		})
	}
	for _, display := range []string{"", "Four", strings.Repeat("é", 30)} {
		id := "abcdef" + strings.Repeat("x", len(display)%27)
		if err := create(id, display, "cluster-1", zone); err != nil {
			t.Errorf("display name %q: %v", display, err)
		}
	}
	instance := "projects/p/instances/abcdef"
	_, err := e.instances().UpdateInstance(e.ctx(), &btapb.Instance{Name: instance, DisplayName: "New", Type: btapb.Instance_PRODUCTION})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: instance, ClusterId: "c2", Cluster: nodes("us-east1-c", 1)})
	wantCode(t, err, codes.InvalidArgument)
	profile := &btapb.AppProfile{Description: strings.Repeat("é", 141), RoutingPolicy: anyCluster().GetRoutingPolicy()}
	wantCode(t, e.createAppProfile(instance, "profile", profile), codes.InvalidArgument)
	profile.Description = strings.Repeat("é", 140)
	if err := e.createAppProfile(instance, "profile", profile); err != nil {
		t.Error(err)
	}
	profile.Name, profile.Description = instance+"/appProfiles/profile", strings.Repeat("d", 141)
	_, err = e.instances().UpdateAppProfile(e.ctx(), &btapb.UpdateAppProfileRequest{AppProfile: profile, UpdateMask: mask("description")})
	wantCode(t, err, codes.InvalidArgument)
}

// By default the server accepts such names, and logs the first one.
func TestProductionLimits_Warning(t *testing.T) {
	t.Parallel()
	for limits, want := range map[Limits]int{StrictLimits: 1, NoLimits: 0} {
		var log bytes.Buffer
		e := newEnvWith(t, Options{Limits: limits, Logger: slog.New(slog.NewTextHandler(&log, nil))}, engine.Options{})
		for _, id := range []string{"dev", "abcdef", "test"} {
			req := &btapb.CreateInstanceRequest{
				Parent: "projects/p", InstanceId: id, Instance: &btapb.Instance{DisplayName: "Display"},
				Clusters: map[string]*btapb.Cluster{"cluster-1": nodes("us-east1-b", 1)},
			}
			if _, err := e.instances().CreateInstance(e.ctx(), req); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(log.String(), "production would reject"); n != want || n == 1 && !strings.Contains(log.String(), `\"dev\" has 3 characters`) {
			t.Errorf("limits %d: %d warnings, expected %d: %s", limits, n, want, log.String())
		}
	}
}
