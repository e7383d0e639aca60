// Package speed measures the coordinator against what its stores can do. It has
// tests and benchmarks only; docs/performance.md says how to read their figures.
//
// A processor and a disk that others use too make every absolute figure doubtful,
// so each is a ratio of two loops that ran in turn within one run: the
// coordinator with its defaults, and the bare mix, which makes exactly as many
// receive, send, save and delete calls of the same sizes, as many of them at a
// time, and does nothing else. What feeds the queues is off the clock of both.
//
// The smoke tests run the same loops on few messages and hold that both sides make
// the same calls. They judge no time.
package speed
