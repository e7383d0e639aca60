package local

import (
	"os"
	"path/filepath"

	"jobq/core/fault"
)

// directories are made below the home at once, so that a home that cannot be
// written is found by Open and not by a task.
var directories = []string{liveDir, "logs", "events", outputDir}

// maxHome bounds the path of the home: SQLite takes 512 bytes for the path of the
// database with an ending of its own.
const maxHome = 512 - len("/"+databaseFile) - len("-journal")

// prepareHome makes the directory tree and returns the home's absolute path.
func prepareHome(home string) (string, error) {
	if home == "" {
		return "", fault.New(fault.Invalid, "no directory is given for the local store; set JOBQ_HOME")
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return "", classify(err, home, "find the home directory")
	}
	if err := checkLength(home); err != nil {
		return "", err
	}
	for _, dir := range append([]string{""}, directories...) {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			return "", classify(err, home, "make the home directory")
		}
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		if err := checkLength(real); err != nil {
			return "", err
		}
	}
	kind, err := networkFileSystem(home)
	if err != nil {
		return "", classify(err, home, "look at the file system")
	}
	if kind != "" {
		return "", fault.Newf(fault.Invalid, "%s lies on a network file system (%s), where the locks of the local store do not hold; set JOBQ_HOME to a directory on a local disk", home, kind)
	}
	return home, nil
}

func checkLength(home string) error {
	if len(home) <= maxHome {
		return nil
	}
	return fault.Newf(fault.Invalid, "the path of the home directory has %d bytes, the database takes %d at most: %s", len(home), maxHome, home).
		WithRemedy("set JOBQ_HOME to a directory with a shorter path")
}

// foldsCase reports whether the file system takes "LIVE" for "live".
func foldsCase(root *os.Root) bool {
	_, err := root.Stat("LIVE")
	return err == nil
}
