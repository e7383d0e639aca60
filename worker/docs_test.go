package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheEnvironmentOfATaskIsDocumented holds docs/tasks.md to what children get.
func TestTheEnvironmentOfATaskIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "docs", "tasks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ownVariables {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/tasks.md does not explain %s", name)
		}
	}
}
