package cond_test

import (
	"os"
	"strings"
	"testing"

	"jobq/core/cond"
)

// TestDocumentTellsTheTruth runs the examples of docs/conditions.md: blocks of
// "EXPRESSION => ANSWER" over the outputs of the block before.
func TestDocumentTellsTheTruth(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	o := outputs{}
	number := 0
	block := ""
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "```"); ok {
			block = rest
			continue
		}
		switch block {
		case "outputs":
			name, output, _ := strings.Cut(line, ": ")
			switch output {
			case "none":
				output = ""
			case "skipped":
				output = absent
			}
			o[name] = output
		case "examples":
			source, want, ok := strings.Cut(line, "=>")
			if !ok {
				t.Errorf("no example: %s", line)
				continue
			}
			number++
			want, part, _ := strings.Cut(strings.TrimSpace(want), ": ")
			got, texts := tried(strings.TrimSpace(source), o)
			if got != want || !strings.Contains(texts, part) {
				t.Errorf("%s is %s (%s), the document says %s: %s", source, got, texts, want, part)
			}
		}
	}
	if number < 40 {
		t.Errorf("found only %d examples", number)
	}
}

// tried returns the answer and all texts that come with it.
func tried(source string, o outputs) (answer, texts string) {
	parents, inputs := o.inputs()
	program, faults := cond.Compile(source, parents)
	if len(faults) > 0 {
		for _, fault := range faults {
			texts += fault.Error() + "\n"
		}
		return "refused", texts
	}
	result := program.Evaluate(inputs)
	return result.Outcome.String(), result.Reason
}
