package emu

import (
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tabletop-emu/tabletop/engine"
)

func (e *env) memoryLayer(cluster string) *btapb.MemoryLayer {
	e.t.Helper()
	m, err := e.instances().GetMemoryLayer(e.ctx(), &btapb.GetMemoryLayerRequest{Name: cluster + "/memoryLayer"})
	if err != nil {
		e.t.Fatal(err)
	}
	return m
}

// TestTrap148_MemoryLayerNeverSet: it exists and is disabled.
func TestTrap148_MemoryLayerNeverSet(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := testInstance + "/clusters/c" // in an implicit instance
	m := e.memoryLayer(name)
	if m.GetEtag() == "" {
		t.Error("it has no etag")
	}
	wantProto(t, m, &btapb.MemoryLayer{Name: name + "/memoryLayer", State: btapb.MemoryLayer_DISABLED, Etag: m.GetEtag()})
	e.mustCreateInstance("i", nodes("z1", 1), nodes("z2", 2))
	for name, code := range map[string]codes.Code{
		testInstance + "/clusters/none/memoryLayer":               codes.NotFound,
		"projects/p/instances/none/clusters/c1/memoryLayer":       codes.NotFound,
		testInstance + "/clusters/c1":                             codes.InvalidArgument,
		testInstance + "/clusters/c1/memoryLayers/m":              codes.InvalidArgument,
		testInstance + "/clusters//memoryLayer":                   codes.InvalidArgument,
		"projects/p/instances/i/tables/t/clusters/c1/memoryLayer": codes.InvalidArgument,
		"": codes.InvalidArgument,
	} {
		_, err := e.instances().GetMemoryLayer(e.ctx(), &btapb.GetMemoryLayerRequest{Name: name})
		wantCode(t, err, code)
	}
}

func TestMemoryLayer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.mustCreateInstance("i", nodes("z1", 1), nodes("z2", 2))
	name := testInstance + "/clusters/c2"
	update := func(m *btapb.MemoryLayer, paths ...string) (*btapb.MemoryLayer, error) {
		t.Helper()
		req := &btapb.UpdateMemoryLayerRequest{MemoryLayer: m}
		if m != nil && m.GetName() == "" {
			m.Name = name + "/memoryLayer"
		}
		if paths != nil {
			req.UpdateMask = mask(paths...)
		}
		op, err := e.instances().UpdateMemoryLayer(e.ctx(), req)
		if err != nil {
			return nil, err
		}
		meta, err := op.GetMetadata().UnmarshalNew()
		if m, ok := meta.(*btapb.UpdateMemoryLayerMetadata); err != nil || !ok || m.GetFinishTime() == nil || m.GetRequestTime() == nil || m.GetOriginalRequest() == nil {
			t.Errorf("metadata: %v, %v", meta, err)
		}
		return response[*btapb.MemoryLayer](e, op, nil), nil
	}
	on := func(etag string) *btapb.MemoryLayer {
		return &btapb.MemoryLayer{MemoryConfig: &btapb.MemoryLayer_MemoryConfig{StorageSizeGib: 99}, Etag: etag} // the size is output only
	}
	unset := e.memoryLayer(name)
	first, err := update(on(unset.GetEtag()))
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, first, &btapb.MemoryLayer{
		Name: name + "/memoryLayer", MemoryConfig: &btapb.MemoryLayer_MemoryConfig{StorageSizeGib: 16}, State: btapb.MemoryLayer_READY, Etag: first.GetEtag(),
	})
	wantProto(t, e.memoryLayer(name), first)
	e = e.restart(dir)
	wantProto(t, e.memoryLayer(name), first)
	_, err = update(on(unset.GetEtag()))
	wantCode(t, err, codes.Aborted)
	second, err := update(&btapb.MemoryLayer{Etag: first.GetEtag()}, "memory_config")
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, second, &btapb.MemoryLayer{Name: name + "/memoryLayer", State: btapb.MemoryLayer_DISABLED, Etag: second.GetEtag()})
	_, err = update(on(unset.GetEtag())) // the state, but not the etag, is as before
	wantCode(t, err, codes.Aborted)
	if _, err = update(on("")); err != nil {
		t.Fatal(err)
	}
	for what, req := range map[string]*btapb.UpdateMemoryLayerRequest{
		"nothing":      {},
		"no name":      {MemoryLayer: &btapb.MemoryLayer{}},
		"state":        {MemoryLayer: on(""), UpdateMask: mask("state")},
		"size":         {MemoryLayer: on(""), UpdateMask: mask("memory_config.storage_size_gib")},
		"everything":   {MemoryLayer: on(""), UpdateMask: mask("*")},
		"another name": {MemoryLayer: &btapb.MemoryLayer{Name: name}},
	} {
		if m := req.GetMemoryLayer(); req.GetUpdateMask() != nil {
			m.Name = name + "/memoryLayer"
		}
		_, err := e.instances().UpdateMemoryLayer(e.ctx(), req)
		if err == nil {
			t.Errorf("%s was accepted", what)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
	}
	_, err = update(&btapb.MemoryLayer{Name: testInstance + "/clusters/none/memoryLayer"})
	wantCode(t, err, codes.NotFound)

	list := func(parent string, size int32) (names []string) {
		t.Helper()
		req := &btapb.ListMemoryLayersRequest{Parent: parent, PageSize: size}
		for {
			resp, err := e.instances().ListMemoryLayers(e.ctx(), req)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range resp.GetMemoryLayers() {
				names = append(names, m.GetName()+" "+m.GetState().String())
			}
			if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
				return names
			}
		}
	}
	for _, size := range []int32{0, 1, 2} {
		wantTexts(t, "all", list(testInstance+"/clusters/-", size), testInstance+"/clusters/c1/memoryLayer DISABLED", name+"/memoryLayer READY")
	}
	wantTexts(t, "one", list(name, 0), name+"/memoryLayer READY")
	for parent, code := range map[string]codes.Code{
		testInstance: codes.InvalidArgument, "": codes.InvalidArgument, "projects/p/instances/none/clusters/-": codes.NotFound, name + "x": codes.NotFound,
	} {
		_, err := e.instances().ListMemoryLayers(e.ctx(), &btapb.ListMemoryLayersRequest{Parent: parent})
		wantCode(t, err, code)
	}

	// It is deleted with its cluster.
	if _, err := e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c2", Cluster: nodes("z2", 1)}); err != nil {
		t.Fatal(err)
	}
	wantProto(t, e.memoryLayer(name), unset)
}

// TestMemoryLayerDelay: it is ENABLING until the operation is done.
func TestMemoryLayerDelay(t *testing.T) {
	t.Parallel()
	e := newEnvWith(t, Options{AdminDelay: time.Minute}, engine.Options{})
	name := testInstance + "/clusters/c"
	req := &btapb.UpdateMemoryLayerRequest{MemoryLayer: &btapb.MemoryLayer{Name: name + "/memoryLayer", MemoryConfig: &btapb.MemoryLayer_MemoryConfig{}}}
	op, err := e.instances().UpdateMemoryLayer(e.ctx(), req)
	if err != nil || op.GetDone() {
		t.Fatal(op, err)
	}
	if m := e.memoryLayer(name); m.GetState() != btapb.MemoryLayer_ENABLING || m.GetMemoryConfig().GetStorageSizeGib() != 0 {
		t.Errorf("got %v", m)
	}
	e.clock.Advance(time.Minute)
	is := e.memoryLayer(name)
	if is.GetState() != btapb.MemoryLayer_READY || is.GetMemoryConfig().GetStorageSizeGib() != 8 {
		t.Errorf("got %v", is)
	}
	if op, err = e.operations().GetOperation(e.ctx(), &longrunningpb.GetOperationRequest{Name: op.GetName()}); err != nil {
		t.Fatal(err)
	}
	wantProto(t, response[*btapb.MemoryLayer](e, op, nil), is)
	// An update of an enabled layer is done at once.
	if op, err = e.instances().UpdateMemoryLayer(e.ctx(), req); err != nil || !op.GetDone() {
		t.Errorf("got %v, %v", op, err)
	}
	// Disabling takes effect at once.
	if op, err = e.instances().UpdateMemoryLayer(e.ctx(), &btapb.UpdateMemoryLayerRequest{MemoryLayer: &btapb.MemoryLayer{Name: name + "/memoryLayer"}}); err != nil || !op.GetDone() {
		t.Errorf("got %v, %v", op, err)
	}
	if m := e.memoryLayer(name); m.GetState() != btapb.MemoryLayer_DISABLED {
		t.Errorf("got %v", m)
	}
}

// TestMemoryConfigOfAppProfile: it is stored.
func TestMemoryConfigOfAppProfile(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z1", 1))
	p := &btapb.AppProfile{
		RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{ClusterId: "c1"}},
		Isolation: &btapb.AppProfile_StandardIsolation_{StandardIsolation: &btapb.AppProfile_StandardIsolation{
			Priority: btapb.AppProfile_PRIORITY_LOW, MemoryConfig: &btapb.AppProfile_StandardIsolation_MemoryConfig{},
		}},
	}
	if _, err := e.instances().CreateAppProfile(e.ctx(), &btapb.CreateAppProfileRequest{Parent: testInstance, AppProfileId: "m", AppProfile: p}); err != nil {
		t.Fatal(err)
	}
	got, err := e.instances().GetAppProfile(e.ctx(), &btapb.GetAppProfileRequest{Name: testInstance + "/appProfiles/m"})
	if err != nil || got.GetStandardIsolation().GetMemoryConfig() == nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestTrap149_Tiers: infrequent access needs at least 30 days, and SSD.
func TestTrap149_Tiers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	tier := func(age time.Duration) *btapb.Table {
		return &btapb.Table{TieredStorageConfig: &btapb.TieredStorageConfig{InfrequentAccess: &btapb.TieredStorageRule{
			Rule: &btapb.TieredStorageRule_IncludeIfOlderThan{IncludeIfOlderThan: durationpb.New(age)},
		}}}
	}
	const day = 24 * time.Hour
	e.mustCreateInstance("i", nodes("z1", 1))
	e.createTable("t", "f")
	_, err := e.updateTable(tier(29*day), "tiered_storage_config")
	wantCode(t, err, codes.InvalidArgument)
	got, err := e.updateTable(tier(30*day), "tiered_storage_config")
	if err != nil || got.GetTieredStorageConfig().GetInfrequentAccess().GetIncludeIfOlderThan().AsDuration() != 30*day {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err = e.updateTable(&btapb.Table{}, "tiered_storage_config"); err != nil || got.GetTieredStorageConfig() != nil {
		t.Errorf("got %v, %v", got, err)
	}
	// A restored table does not have the setting.
	if _, err = e.updateTable(tier(31*day), "tiered_storage_config"); err != nil {
		t.Fatal(err)
	}
	e.backup("b", func(req *btapb.CreateBackupRequest) { req.Parent = testInstance + "/clusters/c1" })
	e.mustRestore(testInstance+"/clusters/c1/backups/b", "t2")
	restored, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testInstance + "/tables/t2", View: btapb.Table_FULL})
	if err != nil || restored.GetTieredStorageConfig() != nil {
		t.Errorf("restored: %v, %v", restored, err)
	}

	hdd := nodes("z2", 1)
	hdd.DefaultStorageType = btapb.StorageType_HDD
	if _, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c2", Cluster: hdd}); err != nil {
		t.Fatal(err)
	}
	// The code is a belief.
	_, err = e.updateTable(tier(30*day), "tiered_storage_config")
	wantCode(t, err, codes.FailedPrecondition, codes.InvalidArgument)
	_, err = e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "tiered", Table: tier(30 * day)})
	wantCode(t, err, codes.FailedPrecondition, codes.InvalidArgument)
	if _, err = e.updateTable(&btapb.Table{}, "tiered_storage_config"); err != nil { // it can be removed
		t.Error(err)
	}
	if _, err := e.updateTable(&btapb.Table{DeletionProtection: true}, "deletion_protection"); err != nil { // other updates still work
		t.Error(err)
	}
}

// TestTrap167_Keys: a key is in the region of its cluster, and either all clusters of an
// instance have keys or none (a belief). See also TestFaultB12.
func TestTrap167_Keys(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	keyed := func(zone, region string) *btapb.Cluster {
		c := nodes(zone, 1)
		c.EncryptionConfig = &btapb.Cluster_EncryptionConfig{KmsKeyName: "projects/q/locations/" + region + "/keyRings/r/cryptoKeys/k"}
		return c
	}
	e.mustCreateInstance("i", keyed("us-east1-b", "us-east1"))
	create := func(c *btapb.Cluster) error {
		_, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c2", Cluster: c})
		return err
	}
	wantStatus(t, create(keyed("us-central1-b", "us-east1")), codes.FailedPrecondition,
		"Error in field 'cluster' : Error in field 'encryption_config.kms_key_name' : CMEK key projects/q/locations/us-east1/keyRings/r/cryptoKeys/k cannot be used to protect a cluster in zone projects/p/locations/us-central1-b")
	// The code is a belief.
	wantCode(t, create(nodes("us-central1-b", 1)), codes.FailedPrecondition, codes.InvalidArgument)
	if err := create(keyed("us-central1-b", "us-central1")); err != nil {
		t.Error(err)
	}
	wantCode(t, e.createInstance("mixed", nodes("us-east1-b", 1), keyed("us-central1-b", "us-central1")), codes.FailedPrecondition, codes.InvalidArgument)
	// A key cannot be changed.
	c := keyed("us-east1-b", "us-east1")
	c.Name = testInstance + "/clusters/c1"
	c.EncryptionConfig.KmsKeyName += "2"
	_, err := e.instances().PartialUpdateCluster(e.ctx(), &btapb.PartialUpdateClusterRequest{Cluster: c, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"encryption_config"}}})
	wantCode(t, err, codes.InvalidArgument)
}
