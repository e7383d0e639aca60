package spec

import (
	"bytes"
	"fmt"
	"testing"
)

// chainText is a workflow of n tasks in a row.
func chainText(n int) []byte {
	var b bytes.Buffer
	b.WriteString("name: chain\ndefault_queue: cpu\ntasks:\n- name: t0\n  kwargs: {cmd: \"true\"}\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "- name: t%d\n  kwargs: {cmd: \"true\"}\n  depends_on: [t%d]\n", i, i-1)
	}
	return b.Bytes()
}

func BenchmarkParseChain(b *testing.B) {
	text := chainText(100_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if d, ds := Parse("chain.yaml", text, nil); d == nil {
			b.Fatal(ds)
		}
	}
}
