package sim

// hash is FNV-1a over words and texts, the same on every machine.
type hash struct{ sum uint64 }

const prime64 = 1099511628211

func newHash(seed uint64) hash { return hash{14695981039346656037 ^ seed*prime64} }

func (h *hash) word(v uint64) {
	h.sum = (h.sum ^ v) * prime64
	h.sum ^= h.sum >> 29
}

func (h *hash) text(s string) {
	sum := h.sum
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * prime64
	}
	h.sum = sum
	h.word(uint64(len(s)))
}
