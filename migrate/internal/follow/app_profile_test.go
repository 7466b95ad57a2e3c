package follow_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/testkit"
)

// profileless is a connection whose row calls fail for lack of their app profile.
type profileless struct{ grpc.ClientConnInterface }

func (profileless) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return noProfile{ctx: ctx}, nil
}

type noProfile struct {
	grpc.ClientStream
	ctx context.Context
}

func (s noProfile) Context() context.Context { return s.ctx }
func (noProfile) SendMsg(any) error          { return nil }
func (noProfile) CloseSend() error           { return nil }
func (noProfile) RecvMsg(any) error {
	return status.Error(codes.NotFound, "App profile not found: projects/tabletop/instances/tabletop/appProfiles/pace")
}

// TestVerify_AppProfile: a missing app profile is an error of a verification, not a difference,
// since the table exists.
func TestVerify_AppProfile(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	items := func() *source.Source {
		src, err := source.OpenFS(fstest.MapFS{"things.jsonl": {Data: []byte(`{"id":{"S":"a"},"n":{"N":"1"}}` + "\n")}}, "things.jsonl", source.Options{Key: "id"})
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	if _, err := migrate.Load(t.Context(), env.Conn(), items(), migrate.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"", "pace"} {
		o := migrate.VerifyOptions{Common: migrate.Common{AppProfile: profile}, Stored: true}
		_, err := migrate.Verify(t.Context(), profileless{env.Conn()}, migrate.OfSource(items()), o)
		if err == nil || !strings.Contains(err.Error(), "App profile not found") || !strings.Contains(err.Error(), "table things") {
			t.Errorf("by the profile %q: error %v, want that of the profile", profile, err)
		}
	}
}
