package cli

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// newTerminal returns the side of a pseudo-terminal that programs see.
func newTerminal(t *testing.T) *os.File {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close() })
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shown.Close() })
	return shown
}

func TestADumbTerminalGetsNoLiveView(t *testing.T) {
	t.Parallel()
	screen := newTerminal(t)
	for term, want := range map[string]bool{"dumb": false, "xterm": true, "": true} {
		v, _ := viewOf(t, 1)
		v.a.err, v.a.out, v.a.env = screen, screen, map[string]string{"TERM": term}
		v.begin()
		v.close()
		if v.live != want || (v.screen.region != nil) != want {
			t.Errorf("with TERM=%q the view is live: %t, want %t", term, v.live, want)
		}
	}
}
