package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/state"
)

// workflowID checks an id that a person typed.
func workflowID(cmd *cobra.Command, id string) error {
	err := dag.CheckWorkflowID(id)
	if err != nil && isPlace(id) {
		return misplaced(verbOf(cmd), []string{id})
	}
	return err
}

// taskWords returns the words of task statuses, each once.
func taskWords() []string {
	var words []string
	for _, s := range state.TaskStatuses() {
		if w := s.String(); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// workflowWords returns the words of workflow statuses.
func workflowWords() []string {
	var words []string
	for _, s := range state.WorkflowStatuses() {
		words = append(words, s.String())
	}
	return words
}

// checkWords refuses what is none of the words of a status.
func checkWords(flag string, given, words []string) error {
	for _, w := range given {
		if !slices.Contains(words, w) {
			return fault.Newf(fault.Invalid, "--%s: %q is no status", flag, w).WithRemedy("choose from " + strings.Join(words, ", "))
		}
	}
	return nil
}

// sortedKeys returns the keys of m in order, so that no answer depends on chance.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// nearest returns the one of names that word is most likely a slip of, or that it
// begins alone, else nothing.
func nearest(word string, names []string) string {
	best, distance, begun := "", 0, 0
	for _, name := range names {
		if strings.HasPrefix(name, word) {
			begun++
			best = name
		}
	}
	if begun == 1 {
		return best
	}
	best = ""
	for _, name := range names {
		if d, near := dag.Near(word, name); near && (best == "" || d < distance) {
			best, distance = name, d
		}
	}
	return best
}
