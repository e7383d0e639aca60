//go:build !race

package cond_test

// slowdown is 1: times are held as they are promised.
const slowdown = 1
