//go:build linux

package spec

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// measured is the environment variable that turns the test program into one
// that parses one text and tells how much memory that took.
const measured = "SPEC_MEASURE"

func TestMain(m *testing.M) {
	switch what := os.Getenv(measured); what {
	case "":
		os.Exit(m.Run())
	case "go-test-std":
		measure("f.yaml", mustUnpack(filepath.Join(casesDir, "go-test-std.yaml.gz")))
	case "chain":
		measure("f.yaml", chainText(25_000, false))
	case "chain JSON":
		measure("f.json", chainJSON(25_000))
	case "200 MiB":
		f, _ := os.Open(os.Getenv("SPEC_FILE"))
		_, err := ReadText("f.yaml", f, Limits{})
		report(err == nil)
	default:
		measure(hostile[what].file, []byte(hostile[what].text()))
	}
}

func measure(file string, text []byte) {
	d, _ := Parse(file, text, nil)
	report(d != nil)
}

// report prints the time of the processor since the start of the process, as
// the tests of other packages may run beside this one, and its peak memory.
func report(accepted bool) {
	var usage syscall.Rusage
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		fmt.Println("no /proc")
		return
	}
	used := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	peak := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	fmt.Printf("%v %d %s\n", accepted, used.Milliseconds(), peak[1])
}

// Time and peak memory of whole processes, in which only the runtime and the
// making of the text come on top of what Parse uses.
func TestTimeAndMemory(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("starts processes and measures them")
	}
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 200<<20); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		accepted bool
		most     time.Duration
		megas    int
	}{
		{"alias bomb of nine levels", false, time.Second, 64},
		{"alias bomb of merge keys", false, time.Second, 64},
		{"20,000 brackets in YAML", false, time.Second, 64},
		{"20,000 brackets in JSON", false, time.Second, 64},
		{"200 MiB", false, time.Second, 64},
		{"go-test-std", true, 3 * time.Second, 300},
		{"chain", true, time.Second, 150},
		{"chain JSON", true, time.Second, 150},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := os.Stat(casesDir); err != nil && tc.name == "go-test-std" {
				t.Skipf("the shared cases are not at %s", casesDir)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), measured+"="+tc.name, "SPEC_FILE="+big)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			fields := strings.Fields(string(out))
			if len(fields) != 3 {
				t.Skipf("memory cannot be measured here: %s", out)
			}
			ms, _ := strconv.Atoi(fields[1])
			kb, _ := strconv.Atoi(fields[2])
			t.Logf("%d ms, %d MB", ms, kb/1024)
			if fields[0] != strconv.FormatBool(tc.accepted) {
				t.Errorf("accepted = %s, want %v", fields[0], tc.accepted)
			}
			if time.Duration(ms)*time.Millisecond > tc.most || kb/1024 > tc.megas {
				t.Errorf("took %d ms and %d MB, want at most %v and %d MB", ms, kb/1024, tc.most, tc.megas)
			}
		})
	}
}
