package cli

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroupTasks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tasks []string
		most  int
		want  map[string]int
	}{
		"few tasks stand for themselves":   {[]string{"a", "b-1"}, 5, map[string]int{"a": 1, "b-1": 1}},
		"numbers fall away first":          {[]string{"train-1", "train-2", "prep-1", "prep-2"}, 2, map[string]int{"train-*": 2, "prep-*": 2}},
		"then the last part":               {[]string{"train-rf-1", "train-gnn-2", "prep-x", "prep-y"}, 2, map[string]int{"train-*": 2, "prep-*": 2}},
		"then all but the first part":      {[]string{"train-a-x", "train-b-y", "prep-a-x", "prep-b-y"}, 2, map[string]int{"train-*": 2, "prep-*": 2}},
		"at last all are one":              {[]string{"a-1", "b-1", "c-1"}, 2, map[string]int{"*": 3}},
		"a group of one shows its name":    {[]string{"train-1", "train-2", "report-7"}, 2, map[string]int{"train-*": 2, "report-7": 1}},
		"many numbered alike fold":         {[]string{"t01", "t02", "t03", "t04", "t05", "t06", "t07", "t08", "t09", "t10", "t11", "end"}, 40, map[string]int{"t*": 11, "end": 1}},
		"names that are numbers":           {[]string{"1", "2", "3"}, 2, map[string]int{"*": 3}},
		"names that begin with a dash":     {[]string{"-1", "-2", "-x"}, 2, map[string]int{"-*": 2, "-x": 1}},
		"names that are not of one script": {[]string{"データ1", "データ2", "データ3"}, 2, map[string]int{"データ*": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := groupTasks(tc.tasks, tc.most)
			got := map[string]int{}
			for _, at := range g.of {
				got[g.names[at]]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("groupTasks(%q, %d) (-want +got):\n%s", tc.tasks, tc.most, diff)
			}
		})
	}
}

func BenchmarkGroupTasks(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("layer-%d-task-%06d", i%50, i)
	}
	for b.Loop() {
		groupTasks(names, maxGroups)
	}
}
