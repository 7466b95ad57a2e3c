package admin

import (
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Progress of an operation follows the clock.
func TestStart_Progress(t *testing.T) {
	t.Parallel()
	db, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	doneAt, now := began.Add(10*time.Second), clock.NewFrozen(began)
	s := operationsService{Control: &Control{DB: db, Clock: now}}
	var op *longrunningpb.Operation
	err = s.change(t.Context(), func(tx *engine.CatalogTx) error {
		var err error
		op, err = s.start(tx, "projects/p/instances/i", &btapb.CopyBackupMetadata{
			Name:     "b",
			Progress: &btapb.OperationProgress{ProgressPercent: 100, StartTime: timestamppb.New(began), EndTime: timestamppb.New(doneAt)},
		}, &btapb.Backup{Name: "b"}, doneAt)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int32{0, 30, 90, 100} {
		if i > 0 {
			now.AdvanceTo(began.Add(time.Duration(want) * time.Second / 10))
			if op, err = s.GetOperation(t.Context(), &longrunningpb.GetOperationRequest{Name: op.GetName()}); err != nil {
				t.Fatal(err)
			}
		}
		m := &btapb.CopyBackupMetadata{}
		if err := op.GetMetadata().UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		if p := m.GetProgress(); p.GetProgressPercent() != want || m.GetName() != "b" || (p.GetEndTime() != nil) != (want == 100) || op.GetDone() != (want == 100) {
			t.Errorf("at %d%%: %v", want, op)
		}
	}
}
