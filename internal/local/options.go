package local

import (
	"log/slog"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/port"
)

// Options say what Execute runs and how.
type Options struct {
	// Home is the directory of the embedded store, Prefix the name space in it.
	Home   string
	Prefix string
	// WorkflowID names the run. With Definition it is submitted, without it the
	// run of that name goes on where it stopped.
	WorkflowID string
	Definition *dag.Definition
	// Retry resets failed tasks before going on.
	Retry bool
	// Workers is the number of tasks at a time; 0 means one a CPU.
	Workers int
	// Dir is what a relative cwd of a task is relative to. A resumed run keeps
	// the one that it was started with; Moved, if set, takes its place from now on.
	Dir, Moved string
	// Executable is the jobq program, for the guardian and the tasks' PATH; empty
	// means the running one.
	Executable string
	Version    string
	By         string
	// KillTimeout is the time between SIGTERM and SIGKILL of a command: 0 means
	// worker.DefaultKillTimeout, below 0 that SIGKILL never follows.
	KillTimeout time.Duration

	// OnHeld is told once which process runs the workflow where it is not ours yet, and
	// OnBegun once that it is stored and ours.
	OnHeld  func(port.Member)
	OnBegun func()
	// OnChange is told of every saved change of the workflow, as coord.Options says.
	OnChange func(coord.Notice)
	// OnCommand is told that the command of an attempt begins or has ended, from
	// many goroutines. It must not block.
	OnCommand func(task string, attempt uint32, begins bool)
	// OnGivenBack is told that a start of a task came to nothing for a reason of this
	// machine, and that another one follows; OnTrouble that the store does not take
	// what must be written, and with nil that it does again. Both from many goroutines.
	OnGivenBack func(task string, why error)
	OnTrouble   func(error)
	// OnStuck is told, with the reason if it is known, that a stop takes longer than
	// commands may, because the store takes nothing. The caller may end the process:
	// what ran then begins again, as after any other death.
	OnStuck func(error)
	// OnOutput is told of every line that a task writes, from many goroutines.
	OnOutput func(Line)
	Logger   *slog.Logger
}

// Line is one line that a task wrote.
type Line struct {
	Task    string
	Attempt uint32
	// Stream is "stdout" or "stderr".
	Stream string
	Text   string
}
