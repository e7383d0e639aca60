package local

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"
)

// The outputs of a large workflow are deleted in several transactions, since other
// writers must not wait for all of them.
func TestManyOutputsAreDeletedInParts(t *testing.T) {
	t.Parallel()
	const n = 2*maxTogether + 500
	ctx := t.Context()
	s, err := Open(ctx, Options{Home: t.TempDir(), Prefix: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.write.do(ctx, false, func(tx *tx) error {
		for i := range n {
			if _, err := tx.exec("INSERT INTO output (prefix, name, file, body) VALUES ('test', ?, '', x'')", fmt.Sprintf("w/%04d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var commits atomic.Int32
	err = s.write.conn.Raw(func(conn any) error {
		conn.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 { commits.Add(1); return 0 })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	outputs := s.Port().Outputs
	if err := outputs.DeletePrefix(ctx, "w/", func(name string) bool { return strings.HasSuffix(name, "99") }); err != nil {
		t.Fatal(err)
	}
	if got := commits.Load(); got != 3 {
		t.Errorf("%d transactions deleted %d outputs, want 3", got, n-n/100)
	}
	left := 0
	for name, err := range outputs.List(ctx, "") {
		if left++; err != nil || !strings.HasSuffix(name, "99") {
			t.Errorf("List = %q, %v; want names that were to be kept", name, err)
		}
	}
	if left != n/100 {
		t.Errorf("%d outputs are left, want %d", left, n/100)
	}
}
