package emu

import (
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// TestHealth checks the server and a service like a probe, and watches for the stop of the
// server.
func TestHealth(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	client := healthpb.NewHealthClient(e.dial())
	for _, service := range []string{"", "google.bigtable.v2.Bigtable", "google.bigtable.admin.v2.BigtableInstanceAdmin"} {
		resp, err := client.Check(e.ctx(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, resp, err)
		}
	}
	_, err := client.Check(e.ctx(), &healthpb.HealthCheckRequest{Service: "google.bigtable.v3.Bigtable"})
	wantCode(t, err, codes.NotFound)

	watch, err := client.Watch(e.ctx(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
		resp, err := watch.Recv()
		if err != nil || resp.GetStatus() != want {
			t.Fatalf("%v, %v; want %v", resp, err, want)
		}
		if want == healthpb.HealthCheckResponse_SERVING {
			e.srv.health.Shutdown() // the first step of GracefulStop, which then waits for this watch
		}
	}
}

// TestReflection prepares calls like grpcurl: it lists the services, requests the file of one
// and all its imports, and builds the descriptors.
func TestReflection(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	stream, err := reflectionpb.NewServerReflectionClient(e.dial()).ServerReflectionInfo(e.ctx())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(req *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	var listed []string
	for _, s := range resp.GetListServicesResponse().GetService() {
		listed = append(listed, s.GetName())
	}
	slices.Sort(listed)
	want := slices.Sorted(maps.Keys(e.srv.grpc.GetServiceInfo()))
	if !slices.Equal(listed, want) || !slices.Contains(listed, btpb.Bigtable_ServiceDesc.ServiceName) {
		t.Errorf("got %q\nwant %q", listed, want)
	}

	files := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var add func(resp *reflectionpb.ServerReflectionResponse)
	add = func(resp *reflectionpb.ServerReflectionResponse) {
		if e := resp.GetErrorResponse(); e != nil {
			t.Fatal(e)
		}
		for _, src := range resp.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(src, file); err != nil {
				t.Fatal(err)
			}
			if seen[file.GetName()] {
				continue
			}
			seen[file.GetName()] = true
			files.File = append(files.GetFile(), file)
			for _, name := range file.GetDependency() {
				if !seen[name] {
					add(ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileByFilename{FileByFilename: name}}))
				}
			}
		}
	}
	for _, service := range listed {
		add(ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service}}))
	}
	registry, err := protodesc.NewFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range listed {
		d, err := registry.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := d.(protoreflect.ServiceDescriptor).Methods().Len(), len(e.srv.grpc.GetServiceInfo()[service].Methods); got != want {
			t.Errorf("%s: %d methods are described of %d", service, got, want)
		}
	}

	resp = ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "google.bigtable.v3.Bigtable"}})
	if got := codes.Code(resp.GetErrorResponse().GetErrorCode()); got != codes.NotFound {
		t.Errorf("a symbol that is none: %v", resp)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	// Older tools use the previous version.
	old, err := grpc_reflection_v1alpha.NewServerReflectionClient(e.dial()).ServerReflectionInfo(e.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Send(&grpc_reflection_v1alpha.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1alpha.ServerReflectionRequest_ListServices{}}); err != nil { //nolint:staticcheck // deprecated, and still asked for
		t.Fatal(err)
	}
	if resp, err := old.Recv(); err != nil || len(resp.GetListServicesResponse().GetService()) != len(listed) { //nolint:staticcheck // deprecated, and still asked for
		t.Errorf("%v, %v", resp, err)
	}
}
