// Package store opens the store that a STORAGE/PREFIX names and is the one
// place that knows every driver.
//
// It decides by the name alone: "local" is the embedded store below a home
// directory, "memory" a store that lives and dies with the value that Open
// returns. It does not wrap what it opens: the local store has no flaky errors
// that a repetition would cure, see store/wrap for those that have.
package store
