//go:build unix

package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"jobq/worker/proc"
)

// roleVariable makes this test binary play a program instead of running tests.
const roleVariable = "JOBQ_PROC_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "slow-term":
		playSlowTerm()
	case "dying-worker":
		playDyingWorker()
	case "idle":
		select {}
	default:
		fmt.Fprintln(os.Stderr, "unknown role")
		os.Exit(99)
	}
}

// playSlowTerm works on after SIGTERM until its standard output has taken one
// more line, then exits 7.
func playSlowTerm() {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	fmt.Println("ready")
	<-terms
	fmt.Println("saving")
	<-time.After(50 * time.Millisecond)
	fmt.Println("saved")
	os.Exit(7)
}

// playDyingWorker runs one command and is killed by the test while it runs.
func playDyingWorker() {
	proc.Run(context.Background(), proc.Spec{
		Command: `exec 9>"$FIFO"; echo ready >&9; exec sleep 600`,
		Env:     os.Environ(),
		Grace:   time.Second,
	})
}

// asRole returns the environment in which this test binary plays role.
func asRole(role string, more ...string) []string {
	return append([]string{roleVariable + "=" + role, "PATH=" + os.Getenv("PATH")}, more...)
}

// environment is what a plain command of these tests gets.
func environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH")}, more...)
}
