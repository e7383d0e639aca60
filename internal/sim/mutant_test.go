package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryMutantStillFitsTheSource(t *testing.T) {
	t.Parallel()
	all, err := ReadMutants("mutants")
	if err != nil || len(all) < 30 {
		t.Fatalf("ReadMutants gave %d mutants, %v; want 30 or more", len(all), err)
	}
	for _, m := range all {
		for _, c := range m.Cuts {
			text, err := os.ReadFile(filepath.Join("..", "..", c.File))
			if err != nil {
				t.Errorf("mutant %s: %v", m.Name, err)
				continue
			}
			if n := strings.Count(string(text), c.Old); n != 1 {
				t.Errorf("mutant %s: %s has %d places that match %q, want one", m.Name, c.File, n, c.Old)
			}
		}
	}
}
