package dag

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// defined makes a definition from lines "name: parent parent".
func defined(lines ...string) *Definition {
	d := &Definition{Name: "w"}
	for _, line := range lines {
		name, parents, _ := strings.Cut(line, ":")
		d.Tasks = append(d.Tasks, Task{Name: name, DependsOn: strings.Fields(parents)})
	}
	return d
}

func mustGraph(t *testing.T, d *Definition) *Graph {
	t.Helper()
	g, problems := NewGraph(d)
	if problems != nil {
		t.Fatalf("NewGraph: %v", problems)
	}
	return g
}

func TestGraphOfADiamond(t *testing.T) {
	t.Parallel()
	g := mustGraph(t, defined("D: C B", "B: A", "C: A", "A"))
	if g.Len() != 4 || g.Edges() != 4 {
		t.Errorf("Len, Edges = %d, %d, want 4, 4", g.Len(), g.Edges())
	}
	if i, ok := g.Index("C"); i != 2 || !ok {
		t.Errorf("Index(C) = %d, %v, want 2, true", i, ok)
	}
	if _, ok := g.Index("c"); ok {
		t.Error("Index(c) found a task: names must be compared exactly")
	}
	for what, tc := range map[string]struct{ got, want any }{
		"parents in the order of depends_on": {g.Parents(0), []int32{2, 1}},
		"children in the order of the file":  {g.Children(3), []int32{1, 2}},
		"order":                              {g.Order(), []int32{3, 1, 2, 0}},
		"levels":                             {g.Levels(), [][]int32{{3}, {1, 2}, {0}}},
		"level widths":                       {g.LevelWidths(), []int{1, 2, 1}},
		"level of the sink":                  {g.Level(0), 2},
		"descendants of B":                   {slices.Collect(g.Descendants(1)), []int{0}},
		"descendants of A and B":             {slices.Collect(g.Descendants(3, 1)), []int{1, 2, 0}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestGraphRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		d    *Definition
		want []string
	}{
		"unknown dependency, near another": {
			defined("prep-clean", "b: prep-claen"),
			[]string{`tasks[1].depends_on[0]: there is no task "prep-claen"; did you mean "prep-clean"?`},
		},
		"unknown dependency, other case": {
			defined("a", "b: A"),
			[]string{`tasks[1].depends_on[0]: there is no task "A"; did you mean "a"?`},
		},
		"unknown dependency, near nothing": {
			defined("a", "b: something"),
			[]string{`tasks[1].depends_on[0]: there is no task "something"; name a task of this file; names are compared exactly`},
		},
		"self-dependency": {
			defined("a: a"),
			[]string{`tasks[0].depends_on[0]: the task depends on itself; remove the entry`},
		},
		"repeated dependency": {
			defined("a", "b: a a"),
			[]string{`tasks[1].depends_on[1]: the dependency on "a" is named twice; remove one of the entries`},
		},
		"repeated name": {
			defined("a", "a"),
			[]string{`tasks[1].name: the task name "a" is used twice; give every task a name of its own`},
		},
		"cycle of two": {
			defined("a: b", "b: a"),
			[]string{`tasks[0].depends_on[0]: 2 tasks wait for each other: "a" -> "b" -> "a"; an arrow points from a task to one it depends on; remove one of these dependencies`},
		},
		"cycle behind and before other tasks": {
			defined("root", "x: root", "late: c", "a: x c", "b: a", "c: b", "after: late"),
			[]string{`tasks[3].depends_on[1]: 3 tasks wait for each other: "a" -> "c" -> "b" -> "a"; an arrow points from a task to one it depends on; remove one of these dependencies`},
		},
		"all at once": {
			defined("a: a", "a", "b: nope", "c: d", "d: c"),
			[]string{
				`tasks[1].name: the task name "a" is used twice; give every task a name of its own`,
				`tasks[0].depends_on[0]: the task depends on itself; remove the entry`,
				`tasks[2].depends_on[0]: there is no task "nope"; name a task of this file; names are compared exactly`,
				`tasks[3].depends_on[0]: 2 tasks wait for each other: "c" -> "d" -> "c"; an arrow points from a task to one it depends on; remove one of these dependencies`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, problems := NewGraph(tc.d)
			if g != nil {
				t.Error("NewGraph returned a graph beside problems")
			}
			if diff := cmp.Diff(tc.want, messages(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func messages(problems []Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Error())
	}
	return all
}

func TestLongCycleIsCut(t *testing.T) {
	t.Parallel()
	const n = 100_000
	d := chain(n)
	d.Tasks[0].DependsOn = []string{d.Tasks[n-1].Name}
	_, problems := NewGraph(d)
	if len(problems) != 1 {
		t.Fatalf("%d problems, want 1", len(problems))
	}
	m := problems[0].Message
	if !strings.HasPrefix(m, `100000 tasks wait for each other: "t0" -> "t99999" -> `) || !strings.HasSuffix(m, `-> (99900 more) -> "t0"`) {
		t.Errorf("message = %.80s … %s", m, m[len(m)-40:])
	}
}

func chain(n int) *Definition {
	d := &Definition{Name: "chain", Tasks: make([]Task, n)}
	for i := range d.Tasks {
		d.Tasks[i].Name = fmt.Sprintf("t%d", i)
		if i > 0 {
			d.Tasks[i].DependsOn = []string{d.Tasks[i-1].Name}
		}
	}
	return d
}

func TestChainOf100000(t *testing.T) {
	t.Parallel()
	g := mustGraph(t, chain(100_000))
	if got := len(g.LevelWidths()); got != 100_000 {
		t.Errorf("%d levels, want 100000", got)
	}
	if got := g.Order()[99_999]; got != 99_999 {
		t.Errorf("last of the order = %d", got)
	}
	reached := 0
	for range g.Descendants(0) {
		reached++
	}
	if reached != 99_999 {
		t.Errorf("%d descendants of the root, want 99999", reached)
	}
}

// drawDefinition draws up to 12 tasks with edges in any direction, so that
// cycles are common.
func drawDefinition(t *rapid.T) *Definition {
	n := rapid.IntRange(1, 12).Draw(t, "tasks")
	d := &Definition{Name: "w", Tasks: make([]Task, n)}
	for i := range d.Tasks {
		d.Tasks[i].Name = fmt.Sprintf("t%d", i)
		for _, p := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, 3, rapid.ID).Draw(t, "parents") {
			if p != i {
				d.Tasks[i].DependsOn = append(d.Tasks[i].DependsOn, fmt.Sprintf("t%d", p))
			}
		}
	}
	return d
}

func TestGraphProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDefinition(t)
		reaches := closure(d)
		cyclic := false
		for i := range reaches {
			cyclic = cyclic || reaches[i][i]
		}
		g, problems := NewGraph(d)
		if cyclic != (g == nil) {
			t.Fatalf("cyclic %v, problems %v", cyclic, problems)
		}
		if cyclic {
			checkNamedCycle(t, d, problems)
			return
		}
		place := make([]int, len(d.Tasks))
		for at, task := range g.Order() {
			place[task] = at
		}
		for i := range d.Tasks {
			for _, p := range g.Parents(i) {
				if place[p] >= place[i] || g.Level(int(p)) >= g.Level(i) || !slices.Contains(g.Children(int(p)), int32(i)) {
					t.Fatalf("edge %d -> %d is out of order", p, i)
				}
			}
			for j := range d.Tasks {
				if got := slices.Contains(slices.Collect(g.Descendants(j)), i); got != reaches[i][j] {
					t.Fatalf("Descendants(%d) has %d = %v, want %v", j, i, got, reaches[i][j])
				}
			}
		}
	})
}

// closure says, slowly and plainly, which task depends on which.
func closure(d *Definition) [][]bool {
	n := len(d.Tasks)
	reaches := make([][]bool, n)
	for i := range reaches {
		reaches[i] = make([]bool, n)
		for _, name := range d.Tasks[i].DependsOn {
			reaches[i][slices.IndexFunc(d.Tasks, func(t Task) bool { return t.Name == name })] = true
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reaches[i][j] = reaches[i][j] || reaches[i][k] && reaches[k][j]
			}
		}
	}
	return reaches
}

func checkNamedCycle(t *rapid.T, d *Definition, problems []Problem) {
	if len(problems) != 1 {
		t.Fatalf("%d problems, want the one cycle: %v", len(problems), problems)
	}
	_, list, _ := strings.Cut(problems[0].Message, ": ")
	names := strings.Split(strings.ReplaceAll(list, `"`, ""), " -> ")
	if names[0] != names[len(names)-1] {
		t.Fatalf("the cycle does not close: %v", names)
	}
	for i, name := range names[:len(names)-1] {
		task := d.Tasks[slices.IndexFunc(d.Tasks, func(t Task) bool { return t.Name == name })]
		if !slices.Contains(task.DependsOn, names[i+1]) {
			t.Fatalf("%s does not depend on %s: %v", name, names[i+1], names)
		}
	}
}

func BenchmarkNewGraph(b *testing.B) {
	d := chain(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := NewGraph(d); problems != nil {
			b.Fatal(problems)
		}
	}
}
