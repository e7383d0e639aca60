package worker

import (
	"testing"

	"jobq/store/memory"
)

// TestTheGuardianIsTheRunningProgram: named by its file, a guardian that has to be
// started anew would be whatever an upgrade has put there, or nothing, and the worker
// would wait for it for ever. Package guard knows how to name the program itself.
func TestTheGuardianIsTheRunningProgram(t *testing.T) {
	t.Parallel()
	w, err := New(Config{Store: memory.New(memory.Options{}).Port(), Queues: []string{"cpu"}})
	if err != nil {
		t.Fatal(err)
	}
	if w.conf.Executable != "" {
		t.Errorf("the program of the guardian is %q, want none named", w.conf.Executable)
	}
	if w.helper == "" {
		t.Error("tasks have no helper on their PATH")
	}
}
