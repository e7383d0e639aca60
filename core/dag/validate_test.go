package dag

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestValidateFields(t *testing.T) {
	t.Parallel()
	base := func(change func(*Definition)) *Definition {
		d := defined("a", "b: a")
		change(d)
		return d
	}
	for name, tc := range map[string]struct {
		d    *Definition
		want []string // parts, one per problem
	}{
		"valid":                 {base(func(*Definition) {}), nil},
		"no name":               {base(func(d *Definition) { d.Name = "" }), []string{"name: the workflow has no name"}},
		"name of 1025 bytes":    {base(func(d *Definition) { d.Name = strings.Repeat("n", 1025) }), []string{"is 1025 bytes long"}},
		"name with a newline":   {base(func(d *Definition) { d.Name = "a\nb" }), []string{"control character"}},
		"no tasks":              {&Definition{Name: "w"}, []string{"tasks: the workflow has no tasks"}},
		"task without a name":   {base(func(d *Definition) { d.Tasks[0].Name = ""; d.Tasks[1].DependsOn = nil }), []string{"tasks[0].name: the task name is empty"}},
		"two without a name":    {&Definition{Name: "w", Tasks: make([]Task, 2)}, []string{"tasks[0].name", "tasks[1].name"}},
		"empty dependency":      {base(func(d *Definition) { d.Tasks[1].DependsOn = []string{""} }), []string{"tasks[1].depends_on[0]: the name of a dependency is empty"}},
		"default queue":         {base(func(d *Definition) { d.DefaultQueue = "A" }), []string{"default_queue: the queue name"}},
		"queue":                 {base(func(d *Definition) { d.Tasks[1].Queue = "GPU_A100" }), []string{"tasks[1].queue: the queue name"}},
		"negative parallelism":  {base(func(d *Definition) { d.MaxParallelism = -1 }), []string{"max_parallelism is -1"}},
		"negative retries":      {base(func(d *Definition) { d.Tasks[0].NumRetries = -1 }), []string{"num_retries is -1"}},
		"too many retries":      {base(func(d *Definition) { d.Tasks[0].NumRetries = 1_000_001 }), []string{"between 0 and 1000000"}},
		"negative timeout":      {base(func(d *Definition) { d.Tasks[0].Timeout = -time.Second }), []string{"tasks[0].timeout"}},
		"timeout of a century":  {base(func(d *Definition) { d.DefaultTimeout = 876_000 * time.Hour }), []string{"default_task_timeout_s"}},
		"policy 0":              {base(func(d *Definition) { d.Tasks[1].DepPolicy = DepPolicy{Kind: AtLeast} }), []string{"dep_policy is 0"}},
		"policy above parents":  {base(func(d *Definition) { d.Tasks[1].DepPolicy = DepPolicy{AtLeast, 2} }), []string{"wants 2 dependencies to succeed, but depends_on has 1"}},
		"policy equals parents": {base(func(d *Definition) { d.Tasks[1].DepPolicy = DepPolicy{AtLeast, 1} }), nil},
		"any without parents":   {base(func(d *Definition) { d.Tasks[0].DepPolicy = DepPolicy{Kind: Any} }), nil},
		"reserved kwargs key":   {base(func(d *Definition) { d.Tasks[0].Kwargs = kwargs("__workflow_id", `1`) }), []string{"tasks[0].kwargs[0]: the kwargs key \"__workflow_id\" starts with"}},
		"repeated kwargs key":   {base(func(d *Definition) { d.Tasks[0].Kwargs = kwargs("a", `1`, "a", `2`) }), []string{"tasks[0].kwargs[1]: the kwargs key \"a\" is given twice"}},
		"kwargs not JSON":       {base(func(d *Definition) { d.Tasks[0].Kwargs = kwargs("a", `{`) }), []string{"is not JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := messages(Validate(tc.d))
			if len(got) != len(tc.want) {
				t.Fatalf("Validate = %q, want %d problems", got, len(tc.want))
			}
			for i := range got {
				if !strings.Contains(got[i], tc.want[i]) {
					t.Errorf("problem %d = %q, want %q in it", i, got[i], tc.want[i])
				}
			}
		})
	}
}

func kwargs(pairs ...string) []Kwarg {
	var all []Kwarg
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, Kwarg{pairs[i], json.RawMessage(pairs[i+1])})
	}
	return all
}

func TestValidateReportsAtMostTheLimit(t *testing.T) {
	t.Parallel()
	d := &Definition{Name: "w", Tasks: make([]Task, 5000)}
	problems := Validate(d)
	if len(problems) != MaxProblems+1 {
		t.Fatalf("%d problems, want %d", len(problems), MaxProblems+1)
	}
	if got, want := problems[MaxProblems].Message, "4000 more faults are not shown"; got != want {
		t.Errorf("last message = %q, want %q", got, want)
	}
}

func TestApplyDefaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		defaultQueue string
		queues, want []string
		notes        int
	}{
		"no queue at all":          {"", []string{"", ""}, []string{"default", "default"}, 1},
		"a default queue":          {"cpu", []string{"", "gpu"}, []string{"cpu", "gpu"}, 0},
		"every task names its own": {"", []string{"gpu", "gpu"}, []string{"gpu", "gpu"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &Definition{Name: "w", DefaultQueue: tc.defaultQueue}
			for _, q := range tc.queues {
				d.Tasks = append(d.Tasks, Task{Queue: q})
			}
			notes := ApplyDefaults(d)
			var got []string
			for i := range d.Tasks {
				got = append(got, d.Tasks[i].Queue)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(notes) != tc.notes || d.DefaultQueue == "" {
				t.Errorf("%d notes, default %q, queues (-want +got):\n%s", len(notes), d.DefaultQueue, diff)
			}
			if again := ApplyDefaults(d); again != nil {
				t.Errorf("a second call has notes: %v", again)
			}
		})
	}
}

func TestTimeoutOf(t *testing.T) {
	t.Parallel()
	d := &Definition{DefaultTimeout: time.Minute, Tasks: []Task{{}, {Timeout: time.Hour}}}
	if d.TimeoutOf(0) != time.Minute || d.TimeoutOf(1) != time.Hour {
		t.Errorf("TimeoutOf = %v, %v", d.TimeoutOf(0), d.TimeoutOf(1))
	}
}
