package state_test

import (
	"crypto/md5"
	"fmt"
	"strings"
	"testing"
	"time"

	"jobq/core/state"
)

// busy returns a workflow of n tasks that all failed once and completed then:
// every column is filled, reasons up to what a state may hold.
func busy(n int) *state.Workflow {
	w := state.New("20260301T120000Z-nightly", n)
	w.Definition, w.CreatedAt, w.UpdatedAt = strings.Repeat("d", 64), epoch, epoch.Add(72*time.Hour)
	w.Version, w.Status = uint64(3*n), state.WorkflowRunning
	reason := strings.Repeat("cannot open the file ", 5)[:100]
	for i := range int32(n) {
		w.TaskStatus[i] = state.Completed
		w.Attempt[i], w.Failures[i] = 300, 3
		w.StartedAt[i] = epoch.Add(time.Duration(i) * 25 * time.Second).UnixMilli()
		w.EndedAt[i] = w.StartedAt[i] + 3_600_000
		w.Outputs[i] = state.Output{Kind: state.CanonicalOutput, HasMD5: true, MD5: md5.Sum(fmt.Append(nil, i))}
		w.Exits[i] = state.Exit{Known: true, Word: "exited", Worker: fmt.Sprintf("worker-%03d", i%500), Start: 2}
		w.GiveBacks[i] = 2
		w.NotBefore[i] = w.StartedAt[i]
		w.Frozen[i] = []int32{0, 2, 3}
		if int(i+1)*len(reason) <= state.MaxTextTotal {
			w.Reasons[i] = reason
		}
	}
	return w
}

func TestTenThousandTasksStaySmall(t *testing.T) {
	t.Parallel()
	b := encode(t, busy(10_000))
	if len(b) >= 1<<20 {
		t.Errorf("10,000 tasks take %d bytes, want less than 1 MiB", len(b))
	}
	t.Logf("%d bytes, %.1f a task", len(b), float64(len(b))/10_000)
}

// TestTenThousandTasksAreQuick has a bound of ten times what DESIGN §6 wants, so
// that a busy machine does not fail it; the benchmarks give the figure.
func TestTenThousandTasksAreQuick(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("not a measure under the race detector")
	}
	w := busy(10_000)
	const limit = 200 * time.Millisecond
	best := time.Hour
	for began := time.Now(); best > limit && time.Since(began) < 20*time.Second; {
		start := time.Now()
		decode(t, encode(t, w))
		best = min(best, time.Since(start))
	}
	if best > limit {
		t.Errorf("encode and decode of 10,000 tasks take %s", best)
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := busy(n)
			size := 0
			for b.Loop() {
				size = len(encode(b, w))
			}
			b.ReportMetric(float64(size)/float64(n), "bytes/task")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			doc := encode(b, busy(n))
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				decode(b, doc)
			}
		})
	}
}
