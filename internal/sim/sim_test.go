package sim

import (
	"testing"
)

func TestRandomHistoriesKeepEveryPromise(t *testing.T) {
	t.Parallel()
	p := &pool{}
	defer p.close()
	for _, personality := range Personalities() {
		for seed := range uint64(1500) {
			c := Draw(seed, personality, AllFaults)
			if w := run(c, p); len(w.Violations) > 0 {
				t.Errorf("seed %d on %s: %v (faults %v)", seed, personality, w.Violations[0], c.Faults)
			}
		}
	}
}
