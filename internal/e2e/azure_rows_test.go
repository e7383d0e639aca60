package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobq/store/azstorage"
)

// TestOutputsOfEverySizeOnAzureStorage is C33: around 32 KiB and far above it,
// with a container for outputs and without one. Each arrives whole.
func TestOutputsOfEverySizeOnAzureStorage(t *testing.T) {
	t.Parallel()
	for name, blobs := range map[string]string{"Plain": "", "Apart": "devstoreaccount1/outputs-apart"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := onAzurite(t, "Sizes"+name)
			if blobs != "" {
				h.env = append(h.env, "JOBQ_WORKFLOW_BLOBS="+blobs)
			}
			sizes := []int{32_767, 32_768, 32_769, 500 << 10, 600 << 10}
			var b strings.Builder
			fmt.Fprintf(&b, "name: sizes\ndefault_queue: sizes-%s\ntasks:\n", strings.ToLower(name))
			var parents []string
			for _, n := range sizes {
				parents = append(parents, fmt.Sprintf("o%d", n))
				fmt.Fprintf(&b, "- name: o%[1]d\n  kwargs:\n    cmd: |\n      { printf '\"'; head -c %[2]d /dev/zero | tr '\\0' x; printf '\"'; } >\"$JOBQ_OUTPUT_FILE\"\n", n, n-2)
			}
			fmt.Fprintf(&b, "- name: read\n  depends_on: [%s]\n  kwargs:\n    cmd: |\n", strings.Join(parents, ", "))
			for _, p := range parents {
				fmt.Fprintf(&b, "      jobq upstream get %s | tr -d '\\n' | wc -c >>got\n", p)
			}
			h.mustRun(0, "submit", h.write("sizes.yaml", b.String()), "--id", "sizes", "--quiet")
			h.serve("devstoreaccount1/sizes-" + strings.ToLower(name))
			if s := h.await("sizes", patience); s.Status != "completed" {
				t.Fatalf("sizes is %s with %v, want completed", s.Status, s.Counts)
			}
			var want []string
			for _, n := range sizes {
				want = append(want, strconv.Itoa(n-2)) // a text is read without its quotes
			}
			if got := h.lines("got"); !slices.Equal(got, want) {
				t.Errorf("the child read outputs of %v bytes, want %v", got, want)
			}
			if blobs == "" {
				return
			}
			if n := h.outputs("Sizes"+name, "outputs-apart"); n < len(sizes) {
				t.Errorf("the container for outputs holds %d, want %d", n, len(sizes))
			}
			if n := h.outputs("Sizes"+name, ""); n != 0 {
				t.Errorf("the container of the prefix holds %d outputs, want none", n)
			}
		})
	}
}

// outputs counts the outputs of a prefix in a container.
func (h *home) outputs(prefix, container string) int {
	h.t.Helper()
	account, err := azstorage.ParseAccount(azstorage.EmulatorAccount, h.getenv)
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := azstorage.Open(h.t.Context(), azstorage.Options{Account: account, Prefix: prefix, Container: container, Create: true})
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	n := 0
	for _, err := range s.Outputs.List(h.t.Context(), "") {
		if err != nil {
			h.t.Fatal(err)
		}
		n++
	}
	return n
}

// getenv looks a variable up as the programs of h see it.
func (h *home) getenv(name string) string {
	for _, v := range slices.Backward(h.env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return os.Getenv(name)
}

// TestOddNamesOnAzureStorage is C60: what may be a name runs, with its record, its
// log and its output, and what may not is refused by our own rule.
func TestOddNamesOnAzureStorage(t *testing.T) {
	t.Parallel()
	h := onAzurite(t, "Odd")
	names := []string{"prep/featurize", "a#b", "a?b", `a\b`, "ـ", "a'b \"c\"", "%2F", ".", "..", "a.", strings.Repeat("n", 256)}
	var b strings.Builder
	b.WriteString("name: odd\ndefault_queue: odd\ntasks:\n")
	for i, name := range names {
		fmt.Fprintf(&b, "- {name: %s, kwargs: {cmd: \"echo said-%d; jobq output set %d\"}}\n", strconv.Quote(name), i, i)
	}
	fmt.Fprintf(&b, "- name: read\n  depends_on: [%s]\n  kwargs:\n    cmd: |\n", quoted(names))
	for _, name := range names {
		fmt.Fprintf(&b, "      jobq upstream get '%s' >>got\n", strings.ReplaceAll(name, "'", `'\''`))
	}
	h.mustRun(0, "submit", h.write("odd.yaml", b.String()), "--id", "odd", "--quiet")
	h.serve("devstoreaccount1/odd")
	if s := h.await("odd", patience); s.Status != "completed" {
		t.Fatalf("odd is %s with %v, want completed", s.Status, s.Counts)
	}
	var shown []string
	for _, task := range h.status("odd", "--tasks").Tasks {
		shown = append(shown, task.Name)
	}
	if !slices.Equal(shown, append(slices.Clone(names), "read")) {
		t.Errorf("the tasks are called %q", shown)
	}
	for i, got := range h.lines("got") {
		if got != strconv.Itoa(i) {
			t.Errorf("the output of %q reads as %s, want %d", names[i], got, i)
		}
		if r := h.mustRun(0, "logs", "odd", names[i]); !strings.Contains(r.stdout, fmt.Sprint("said-", i)) {
			t.Errorf("the log of %q is %q", names[i], r.stdout)
		}
	}
	if n := len(h.lines("got")); n != len(names) {
		t.Errorf("the child read %d outputs, want %d", n, len(names))
	}

	for name, want := range map[string]string{"a\tb": "control character", strings.Repeat("n", 300): "300 bytes", "": "name"} {
		file := h.write("refused.yaml", fmt.Sprintf("name: odd\ntasks:\n- {name: %s, kwargs: {cmd: \"true\"}}\n", strconv.Quote(name)))
		if r := h.mustRun(2, "submit", file); !strings.Contains(r.stderr, want) {
			t.Errorf("submit of a task called %.20q does not say %q:\n%s", name, want, r.stderr)
		}
	}
	good := h.write("good.yaml", "name: good\ntasks:\n- {name: a, kwargs: {cmd: \"true\"}}\n")
	for _, id := range []string{"prep/featurize", "a#b", "a?b", `a\b`, "a\tb", "ـ", strings.Repeat("n", 300)} {
		if r := h.mustRun(2, "submit", good, "--id", id); !strings.Contains(r.stderr, "workflow id") {
			t.Errorf("submit as %q does not speak of the workflow id:\n%s", id, r.stderr)
		}
	}
}

// TestQueueNamesOnAzureStorage is C61: what the service would refuse is refused
// before with the rule, and the longest name there may be has room for its poison.
func TestQueueNamesOnAzureStorage(t *testing.T) {
	t.Parallel()
	h := onAzurite(t, "Names")
	one := func(queue string) string {
		return h.write("one.yaml", "name: one\ntasks:\n- {name: a"+queue+", kwargs: {cmd: \"echo ran >>ran\"}}\n")
	}
	for name, want := range map[string]string{
		"GPU_A100": "lower-case", "a--b": "single hyphens", "-a": "letter or digit", "ab": "3 to 56",
		strings.Repeat("q", 64): "3 to 56", strings.Repeat("q", 57): "3 to 56", "": "empty",
	} {
		r := h.mustRun(2, "submit", one(", queue: "+strconv.Quote(name)))
		if !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, `task "a"`) {
			t.Errorf("submit to queue %q does not name the rule %q:\n%s", name, want, r.stderr)
		}
	}
	longest := strings.Repeat("q", 56)
	h.mustRun(0, "submit", one(", queue: "+longest), "--id", "longest", "--quiet")
	if r := h.mustRun(0, "submit", one(""), "--id", "none"); !strings.Contains(r.stderr, `"default"`) && !strings.Contains(r.stderr, "queue default") {
		t.Errorf("submit without a queue does not note where it goes:\n%s", r.stderr)
	}
	h.serve("devstoreaccount1/"+longest, "devstoreaccount1/default")
	for _, id := range []string{"longest", "none"} {
		if s := h.await(id, patience); s.Status != "completed" {
			t.Errorf("%s is %s, want completed", id, s.Status)
		}
	}
	if n := len(h.lines("ran")); n != 2 {
		t.Errorf("%d tasks ran, want 2", n)
	}
}
