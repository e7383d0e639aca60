package sim

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPublicGraphsKeepEveryPromise plays some of the public workflows, which lie
// beside the repository.
func TestPublicGraphsKeepEveryPromise(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"argo-depends", "gha-uv-ci22-code-pr", "wf-epigenomics41", "wf-montage103"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("..", "..", "..", "shared", "cases", "dags", name+".yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Skipf("the public workflows are not beside the repository: %v", err)
			}
			d, err := ReadWorkflow(file, text)
			if err != nil {
				t.Fatal(err)
			}
			c := Campaign{First: 1, Last: 4, Personalities: Personalities(), Faults: AllFaults, Shape: Graph(d)}
			for _, f := range c.Run(instant).Failures {
				t.Errorf("seed %d on %s: %v", f.Config.Seed, f.Config.Personality, f.Violation)
			}
		})
	}
}
