package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// built is the folder of the program that buildOnce made, for TestMain to remove.
var built string

var buildOnce = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("JOBQ_BIN"); path != "" {
		return filepath.Abs(path)
	}
	var err error
	if built, err = os.MkdirTemp("", "jobq-e2e-"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "jobq")
	cmd := exec.Command("go", "build", "-o", path, "jobq/cmd/jobq")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// home is one installation: a program and a JOBQ_HOME of its own.
type home struct {
	t    testing.TB
	bin  string
	dir  string
	path string
	// env is added to the environment of every program.
	env []string
}

func newHome(t testing.TB) *home {
	t.Helper()
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return &home{t: t, bin: bin, dir: dir, path: filepath.Join(dir, "home")}
}

func (h *home) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.bin, args...)
	cmd.Dir = h.dir
	cmd.Env = append(append(outside(), "JOBQ_HOME="+h.path), h.env...)
	// A program that a test leaves behind must not outlive it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// outside is the environment of the tests without what says where an installation is:
// a developer may have one of his own.
func outside() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return slices.ContainsFunc([]string{"JOBQ_", "AZURE_", "BLOB_PORT=", "QUEUE_PORT=", "TABLE_PORT="}, func(name string) bool {
			return strings.HasPrefix(v, name)
		})
	})
}

// result is what one run of the program printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func (h *home) run(args ...string) result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := h.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		h.t.Fatalf("jobq %s: %v", strings.Join(args, " "), err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// mustRun runs the program and fails unless it exits with code.
func (h *home) mustRun(code int, args ...string) result {
	h.t.Helper()
	r := h.run(args...)
	if r.code != code {
		h.t.Fatalf("jobq %s: exit %d, want %d\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

// summary is the part of the status JSON that the tests look at.
type summary struct {
	Status string         `json:"status"`
	Total  int            `json:"total"`
	Counts map[string]int `json:"counts"`
	Tasks  []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Reason string `json:"reason"`
	} `json:"tasks"`
}

func (h *home) status(id string, flags ...string) summary {
	h.t.Helper()
	r := h.mustRun(0, append([]string{"status", id, "--json"}, flags...)...)
	var s summary
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		h.t.Fatalf("status --json: %v\n%s", err, r.stdout)
	}
	return s
}

// write puts a file beside the home and returns its path.
func (h *home) write(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// lines returns the lines of a file, none when it is absent.
func (h *home) lines(name string) []string {
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// cases returns the path of a file of the shared test data, or skips: on a
// checkout without it the test has nothing to read.
func cases(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "cases", "dags", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("test data %s is not beside this checkout: %v", name, err)
	}
	return path
}
