//go:build race

package cond_test

// slowdown is what the race detector costs, generously.
const slowdown = 20
