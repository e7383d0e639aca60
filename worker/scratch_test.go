package worker

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/worker/protocol"
)

func TestWhatIsMissingInTheScratchDirectoryIsMadeAgain(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	s, err := newScratch(base, "jobq")
	if err != nil {
		t.Fatal(err)
	}
	siblings := protocol.Start{Task: msg.Task{Workflow: "w", Statuses: map[string][]string{"failed": {"a"}}}}
	for _, gone := range []string{s.dir, s.outputs, s.bin, s.noUpstream, base} {
		if _, err := s.prepare(t.Context(), siblings); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		for _, start := range []protocol.Start{{Task: msg.Task{Workflow: "w"}}, siblings} {
			f, err := s.prepare(t.Context(), start)
			if err != nil {
				t.Fatalf("prepare without %s = %v", gone, err)
			}
			for _, path := range []string{filepath.Dir(f.outputPath), f.upstreamDir, f.refsPath, s.helper()} {
				if _, err := os.Lstat(path); err != nil {
					t.Errorf("without %s: %v", gone, err)
				}
			}
		}
	}
}

func TestAShortMachineIsNoFaultOfTheOutput(t *testing.T) {
	t.Parallel()
	for cause, short := range map[error]bool{
		syscall.EMFILE: true, syscall.ENFILE: true, syscall.ENOMEM: true, syscall.EIO: true,
		syscall.EACCES: false, syscall.ELOOP: false, syscall.ENXIO: false,
	} {
		err := unreadable(&os.PathError{Op: "open", Path: "out.json", Err: cause})
		if errors.Is(err, errDisk) != short || fault.Is(err, fault.Invalid) == short {
			t.Errorf("unreadable(%v) = %v, want the machine at fault: %t", cause, err, short)
		}
	}
}
