package azurite

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed testdata/npm/package.json testdata/npm/package-lock.json
var manifest embed.FS

// installTime bounds one `npm ci`.
const installTime = 5 * time.Minute

// errMissing says that the machine lacks what the emulator runs on.
var errMissing = errors.New("node or npm is not installed")

// install returns the directory with the emulator of the lock file, which it
// fills where no other process has.
func install(ctx context.Context) (string, error) {
	lock, err := manifest.ReadFile("testdata/npm/package-lock.json")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		// Without a home directory, as in some sandboxes.
		cache = os.TempDir()
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "jobq-test", "azurite-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, fill(ctx, dir)
}

// fill makes dir in one step, so that it is complete wherever it is.
func fill(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return errMissing
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	files, err := fs.Sub(manifest, "testdata/npm")
	if err != nil {
		return err
	}
	if err := os.CopyFS(temp, files); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = temp
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return os.Rename(temp, dir)
}
