package e2e

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"jobq/internal/azurite"
)

// faninKills is how often each coordinator and worker is killed.
const faninKills = 10

// TestTwoCoordinatorsMeetAtOneJoin runs 1,100 tasks into one join with two
// coordinators at once, both with warm caches and without a lease between them,
// and kills coordinators and workers in turn. The emulator is slow with long
// queues: this takes minutes.
func TestTwoCoordinatorsMeetAtOneJoin(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	t.Parallel()
	h := newHome(t)
	// A server of its own: a long queue slows down everything beside it.
	var own azurite.Shared
	t.Cleanup(own.Close)
	h.env = append(own.Server(t).Env(), "JOBQ_WORKFLOW_PREFIX=devstoreaccount1/Join")
	h.mustRun(0, "submit", cases(t, "wf-seismology1101.yaml"), "--id", "join", "--quiet")

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	kills := make([]int, 4)
	worker := []string{"worker", "-n", "4", "--quiet", "--max-idle-backoff", "0.5", "--visibility-timeout", "20", "devstoreaccount1/cpu-general", "devstoreaccount1/short", "devstoreaccount1/medium", "devstoreaccount1/long"}
	for i, m := range []member{
		{"coordinator 1", []string{"coordinator", "--quiet", "--no-lease", "--visibility-timeout-s", "20"}},
		{"coordinator 2", []string{"coordinator", "--quiet", "--no-lease", "--visibility-timeout-s", "20"}},
		{"worker 1", worker}, {"worker 2", worker},
	} {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() { kills[i] = h.killSometimes(ctx, random, m) })
	}
	s := h.await("join", 8*time.Minute)
	stop()
	wg.Wait()
	if s.Status != "completed" || s.Counts["completed"] != 1101 {
		t.Errorf("workflow is %s with %v, want 1,101 completed", s.Status, s.Counts)
	}
	t.Logf("killed: %v", kills)
}

// killSometimes keeps a program running, kills it up to faninKills times, and
// then lets it be.
func (h *home) killSometimes(ctx context.Context, random *rand.Rand, m member) int {
	for n := 0; ; {
		cmd := h.command(ctx, m.args...)
		if err := cmd.Start(); err != nil {
			h.t.Errorf("%s: %v", m.name, err)
			return n
		}
		var timer *time.Timer
		if n < faninKills {
			timer = time.AfterFunc(time.Duration(2000+random.IntN(6000))*time.Millisecond, func() { cmd.Process.Kill() })
		}
		_ = cmd.Wait()
		if ctx.Err() != nil {
			return n
		}
		if timer == nil || timer.Stop() {
			h.t.Errorf("%s ended by itself: %v", m.name, cmd.ProcessState)
			return n
		}
		n++
	}
}
