package testkit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocksAreWhatTheyLookLike(t *testing.T) {
	t.Parallel()
	text := "# A story.\n\ndefine one\n\tA\nsubmit w1 one\n----\nw1 running\n\n# Then.\ntick 1s\n----\n\nshow w1\n"
	got := parseBlocks(text)
	want := []block{
		{line: 3, head: "# A story.\n\n", commands: []string{"define one", "\tA", "submit w1 one"}, want: "w1 running\n"},
		{line: 10, head: "# Then.\n", commands: []string{"tick 1s"}},
		{line: 13, commands: []string{"show w1"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{})); diff != "" {
		t.Errorf("parseBlocks (-want +got):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	a := parseArgs(`D < B C policy=any condition='inputs.B.x > 1' output={"x":"a=b"}`)
	want := args{
		words: []string{"D", "<", "B", "C"},
		named: map[string]string{"policy": "any", "condition": "inputs.B.x > 1", "output": `{"x":"a=b"}`},
	}
	if diff := cmp.Diff(want, a, cmp.AllowUnexported(args{})); diff != "" {
		t.Errorf("parseArgs (-want +got):\n%s", diff)
	}
	if wf, task := parseArgs("w1/prep/one").task(0); wf != "w1" || task != "prep/one" {
		t.Errorf("task = %q, %q", wf, task)
	}
}
