package shownby

import "testing"

// A test, a subtest and a file are found where they are, and nowhere else.
func TestFind(t *testing.T) {
	t.Parallel()
	for what, there := range map[string]bool{
		"TestFind": true, "TestFind/a subtest": true, "TestFin": false, "TestFind/b" + "subtest": false,
		"internal/shownby:TestFind": true, "internal/nowhere:TestFind": false, "testdata/nothing": false,
	} {
		if err := Find("../..", what); (err == nil) != there {
			t.Errorf("%s: %v", what, err)
		}
	}
	t.Run("a subtest", func(t *testing.T) { t.Parallel() })
}
