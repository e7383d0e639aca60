package proc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		want status
	}{
		"running": {
			"12 (sh) R 1 11 10 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 1 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 1 2 3 4 5 6 7 0",
			status{pgid: 11, alive: true},
		},
		"a name that looks like the fields behind it": {
			"12 (a) Z 9 8 (b) S 1 11 10 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 1 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 1 2 3 4 5 6 7 0",
			status{pgid: 11, alive: true},
		},
		"zombie": {
			"12 (sh) Z 1 11 10 0 -1 4194308 1 2 3 4 5 6 7 8 20 0 1 0 99 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
			status{pgid: 11, bare: true},
		},
		"first thread ended, others run": {
			"12 (srv) Z 1 11 10 0 -1 4194308 1 2 3 4 5 6 7 8 20 0 3 0 99 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
			status{pgid: 11, alive: true, bare: true},
		},
		"one program takes the place of another": {
			"12 (sh) R 1 11 10 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 1 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
			status{pgid: 11, alive: true},
		},
		"kernel thread": {
			"12 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
			status{alive: true, bare: true},
		},
		"on its way out": {
			"12 (sh) R 1 11 10 0 -1 4194308 1 2 3 4 5 6 7 8 20 0 1 0 99 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
			status{pgid: 11, alive: true, bare: true},
		},
		"a program without environment": {
			"12 (sh) S 1 11 10 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 1 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 1 2 3 4 5 6 6 0",
			status{pgid: 11, alive: true, bare: true},
		},
		"gone":  {"", status{bare: true}},
		"short": {"12 (sh) R 1 11", status{bare: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, parseStat([]byte(tc.line)), cmp.AllowUnexported(status{})); diff != "" {
				t.Errorf("parseStat(%q) (-want +got):\n%s", tc.line, diff)
			}
		})
	}
}
