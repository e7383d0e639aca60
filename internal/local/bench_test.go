package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"jobq/core/dag"
)

// BenchmarkFanOut runs 2,000 no-op tasks behind one root on two slots, next to a
// loop that starts the same commands: the difference is ours.
func BenchmarkFanOut(b *testing.B) {
	const tasks, slots = 2000, 2
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	d := &dag.Definition{Name: "fanout"}
	cmd := []dag.Kwarg{{Key: "cmd", Value: []byte(`"true"`)}}
	d.Tasks = append(d.Tasks, dag.Task{Name: "root", Kwargs: cmd})
	for i := range tasks - 1 {
		d.Tasks = append(d.Tasks, dag.Task{Name: fmt.Sprintf("leaf-%04d", i), Kwargs: cmd, DependsOn: []string{"root"}})
	}
	dag.ApplyDefaults(d)
	var ours, bare time.Duration
	for b.Loop() {
		bare += startAll(b, tasks, slots)
		o := Options{
			Home: filepath.Join(b.TempDir(), "home"), Prefix: "default", WorkflowID: "fan", Definition: d,
			Workers: slots, Dir: b.TempDir(), Executable: program,
		}
		begin := time.Now()
		sum, err := Execute(b.Context(), o)
		if err != nil || sum.Counts.Completed != tasks {
			b.Fatalf("Execute = %+v, %v", sum, err)
		}
		ours += time.Since(begin)
	}
	b.ReportMetric(float64((ours-bare).Microseconds())/1000/tasks/float64(b.N), "ms-overhead/task")
	b.ReportMetric(ours.Seconds()/float64(b.N), "s-run")
	b.ReportMetric(bare.Seconds()/float64(b.N), "s-bare")
}

func startAll(b *testing.B, n, slots int) time.Duration {
	b.Helper()
	begin := time.Now()
	next := make(chan struct{})
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for range next {
				if err := exec.Command("sh", "-c", "true").Run(); err != nil {
					b.Error(err)
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
