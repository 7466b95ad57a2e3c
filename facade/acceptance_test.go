package facade

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/shownby"
)

const cases = "testdata/operations/"

// acceptance is what statements, logs, streams, recovery, exports, imports and throttling
// must show, point by point, what shows it, and what is not shown.
var acceptance = []struct {
	point   string
	shownBy []string
	lacks   string
}{
	{"1 each text of PartiQL", []string{"TestMessages", cases + "execute_statement/texts", cases + "execute_statement/refusals"}, ""},
	{"2 each two checks of ExecuteStatement that follow each other", []string{cases + "execute_statement/order"}, ""},
	{"3 a WHERE finds what a FilterExpression does", []string{"TestExecuteStatement_Filter_Point3"}, ""},
	{"4 statements of any size and depth in linear time", []string{
		"facade/internal/partiql:TestParse_Deep_Point4", "facade/internal/partiql:TestParse_Linear_Point4", "facade/internal/partiql:FuzzParse", "facade/internal/partiql:FuzzLex",
	}, ""},
	{"5 pages of any size, tokens over a restart", []string{"TestExecuteStatement_NextToken_Point5"}, ""},
	{"6 a statement consumes what the plain request does", []string{"TestExecuteStatement_Capacity_Point6"}, ""},
	{"7 one record of each write that is committed, wherever its process is killed", []string{
		"TestCrash_Stream", "TestStreams_Point7_LostAnswers", "TestStreams_Point7_EachCall", "conformance:TestKill_Streams",
	}, ""},
	{"8 processes with skewed clocks", []string{
		"TestStreams_Point8_SkewedClocks", "TestStreams_TwoServersInTurn", "TestStreams_BeginsBesideAnotherProcess",
		"TestKinesis_BeginsBesideAnotherProcess", "TestBackups_BeginBesideAnotherProcess", "TestCreateBackup_BesideAnotherProcess",
	}, ""},
	{"9 what changes nothing leaves no record", []string{"TestStreams_Point9_NoChange"}, ""},
	{"10 who deleted", []string{"TestStreams_Point10_Expired"}, ""},
	{"11 ages of iterators and records", []string{"TestStreams_Point11_Ages", "TestStreams_Retention"}, ""},
	{"12 lives of streams", []string{"TestStreams_Point12_Lives", cases + "golden/streams", cases + "statuses/streams"}, ""},
	{"13 rotation", []string{"TestStreams_Point13_Rotation", "facade/internal/streams:TestView_Lineage"}, ""},
	{"14 tables without a log make the calls that they made", []string{"TestRequest_Calls", "TestRequest_CallsWithLog", "TestBackups_CostNothing"}, ""},
	{"15 what a write with a log costs", []string{"BenchmarkCompareRecordedPut"}, ""},
	{"16 restores to each second, and during writes", []string{
		"TestRestoreTableToPointInTime_EachSecond", "facade/internal/store:TestHistory_EachSecond", "facade/internal/store:TestHistory_WhileItIsWritten",
	}, ""},
	{"17 full and incremental exports replay, and are whole or not there", []string{
		"TestExports_RoundTrip", "TestExports_AtTime", "TestKilled_Export", "TestExports_Memory", "cmd/tabletop:TestServe_Buckets", "internal/s3export:TestWriter",
	}, "exports are cut off at each call of the Bigtable behind, not at each operation on the folder"},
	{"18 imports of own exports, and each failure", []string{"cmd/tabletop:TestServe_Buckets", "conformance:TestGoDynamoDB_Exports", cases + "import_table/states"}, ""},
	{"19 orders of the checks of restores and exports", []string{cases + "backups/order", cases + "backups/restores", "TestRestore_UnderWay", cases + "export_table/checks"}, ""},
	{"20 backups, restores, exports and imports over a restart", []string{
		"TestKilled_Backup", "TestKilled_RestoreFromBackup", "TestKilled_RestoreToTime", "TestKilled_Import", "TestKilled_Export",
		"TestImport_AgainBehindClients", "TestRestore_GoesOnAfterARestart", "TestRestore_IsTakenOver", "TestExports_Restart",
	}, ""},
	{"21 Kinesis destinations and their delivery", []string{
		cases + "kinesis/states", "TestKinesis_Endpoint", "TestKilled_Kinesis", "facade/internal/kinesis:TestDelivery_AtLeastOnceInOrder", "facade/internal/kinesis:TestDir_Shared", "cmd/tabletop:TestServe_Kinesis", "testkit:TestDumpAll_Kinesis",
	}, ""},
	{"22 a policy that is read and put again changes nothing", []string{"facade/internal/policy:FuzzPut", cases + "golden/policies", cases + "resource_policy/documents"}, ""},
	{
		"23 exact counts of what is admitted",
		[]string{"TestThrottle_ExactCounts", "facade/internal/throttle:TestTake_Model", "cmd/tabletop:TestServe_Throttle", "facade/internal/insights:TestKeys_Bounded", "control:TestInsights"},
		"",
	},
	{"24 what the support table says", []string{"TestOperations_Table", "TestOperations_Refused", "conformance:TestGoDynamoDB_Listed"}, ""},
}

// What is to show each point is there.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	for _, a := range acceptance {
		for _, what := range a.shownBy {
			if err := shownby.Find("..", what); err != nil {
				t.Errorf("point %s: %v", a.point, err)
			}
		}
		if a.lacks != "" {
			t.Logf("point %s: %s", a.point, a.lacks)
		}
	}
}

// goldenRequests are where the sixty golden requests are: by number in files of cases, or what shows one.
func goldenRequests() map[int]string {
	at := map[int]string{
		56: "TestRestoreTableToPointInTime_EachSecond", 57: cases + "backups/restores", 58: cases + "export_table/states", 59: cases + "import_table/states", 60: cases + "golden/policies",
	}
	for n := 1; n <= 50; n++ {
		at[n] = cases + "golden/partiql"
	}
	for n := 51; n <= 55; n++ {
		at[n] = cases + "golden/streams"
	}
	return at
}

// TestAcceptance_GoldenRequests: each golden request is a case under its number, or is shown by what is named.
func TestAcceptance_GoldenRequests(t *testing.T) {
	t.Parallel()
	for n, where := range goldenRequests() {
		if err := shownby.Find("..", where); err != nil {
			t.Errorf("request %d: %v", n, err)
			continue
		}
		if !strings.Contains(where, "/golden/") {
			continue
		}
		text, err := os.ReadFile(where)
		if err != nil || !strings.Contains(string(text), fmt.Sprintf("\n# %d\n", n)) {
			t.Errorf("request %d is not in %s: %v", n, where, err)
		}
	}
}
