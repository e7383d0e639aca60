package busstand_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobq/internal/busstand"
)

// pythonClient is the second client, which shares no code with the first.
const pythonClient = "azure-servicebus==7.15.0"

// TestAnotherClient lets the client of another language, with an AMQP of its
// own, use the stand-in: what two clients agree on is the protocol, and no
// habit of one of them.
func TestAnotherClient(t *testing.T) {
	t.Parallel()
	python, packages := installPythonClient(t)
	s := busstand.New(busstand.Options{})
	t.Cleanup(s.Close)
	s.CreateQueue("cpu", busstand.QueueConfig{Lock: time.Minute, DedupWindow: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, filepath.Join("testdata", "client.py"), address(t, s))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "all asserts hold" {
		t.Errorf("client.py = error %v:\n%s", err, out)
	}
}

// installPythonClient returns Python and the folder of the client, which is kept
// for the next run. A developer's machine may lack Python, CI may not; the
// registry of packages may be out of reach of either.
func installPythonClient(t *testing.T) (python, packages string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI must have python3 for the second client: %v", err)
		}
		t.Skip("python3 is not there, so the second client cannot run")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	packages = filepath.Join(cache, "jobq-tests", pythonClient)
	if _, err := os.Stat(packages); err == nil {
		return python, packages
	}
	if err := os.MkdirAll(filepath.Dir(packages), 0o755); err != nil {
		t.Fatalf("MkdirAll = error %v", err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(packages), "installing-")
	if err != nil {
		t.Fatalf("MkdirTemp = error %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(fresh) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", fresh, pythonClient).CombinedOutput()
	if err != nil {
		t.Skipf("the second client is not tested: pip cannot install %s here (error %v):\n%s", pythonClient, err, out)
	}
	// Another run may have been faster; its folder is as good.
	if err := os.Rename(fresh, packages); err != nil {
		if _, err := os.Stat(packages); err != nil {
			t.Fatalf("Rename = error %v", err)
		}
	}
	return python, packages
}
