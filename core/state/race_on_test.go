//go:build race

package state_test

// raceDetector slows everything down many times: bounds of time do not hold.
const raceDetector = true
