package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	overheadTasks = 2000
	overheadSlots = 2
	overheadRuns  = 5
)

// BenchmarkRunOverhead measures what `jobq run` adds to each no-op task:
// (wall of jobq run - wall of a loop that starts the same commands with the same
// slots) / tasks, in pairs, the median of five. Run it alone:
//
//	go test ./internal/e2e -run '^$' -bench RunOverhead -benchtime 1x
func BenchmarkRunOverhead(b *testing.B) {
	h := newHome(b)
	file := h.write("fanout.yaml", fanOut(overheadTasks))
	var overhead, bare, wall []time.Duration
	for b.Loop() {
		for i := range overheadRuns {
			plain := startAll(b, overheadTasks, overheadSlots)
			begin := time.Now()
			cmd := h.command(b.Context(), "run", file, "--id", fmt.Sprintf("fan-%d-%d", i, begin.UnixNano()), "--workers", "2", "--quiet")
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("jobq run: %v\n%s", err, out)
			}
			took := time.Since(begin)
			bare, wall = append(bare, plain), append(wall, took)
			overhead = append(overhead, (took-plain)/overheadTasks)
			os.RemoveAll(filepath.Join(h.dir, "home"))
		}
	}
	b.ReportMetric(float64(median(overhead).Microseconds())/1000, "ms-overhead/task")
	b.ReportMetric(median(bare).Seconds(), "s-bare")
	b.ReportMetric(median(wall).Seconds(), "s-jobq")
	b.ReportMetric(0, "ns/op")
}

func fanOut(n int) string {
	var b strings.Builder
	b.WriteString("name: fanout\ntasks:\n- {name: root, kwargs: {cmd: \"true\"}}\n")
	for i := range n - 1 {
		fmt.Fprintf(&b, "- {name: leaf-%04d, kwargs: {cmd: \"true\"}, depends_on: [root]}\n", i)
	}
	return b.String()
}

// startAll starts n no-op commands as jobq does, by sh -c, slots at a time.
func startAll(tb testing.TB, n, slots int) time.Duration {
	tb.Helper()
	begin := time.Now()
	next := make(chan struct{})
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for range next {
				if err := exec.Command("sh", "-c", "true").Run(); err != nil {
					tb.Error(err)
				}
			}
		})
	}
	for range n {
		next <- struct{}{}
	}
	close(next)
	wg.Wait()
	return time.Since(begin)
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}
