package coord_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"jobq/internal/testkit"
)

// TestScenarios plays the stories of testdata. Each bug that was found has one.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testkit.Scenario(t, file) })
		})
	}
}
