// Package azurite starts the emulator of Azure Storage for tests.
//
// A test package has one Shared, whose server starts with the first test that
// asks for it and is ended after the last one: by Close in TestMain, and by the
// kernel where the test process dies (on Linux). All data are in its memory.
// Each test takes an account of its own, so that queue names need no prefix.
//
// The emulator comes from npm at the versions of testdata/npm/package-lock.json and is
// installed once per machine into the user's cache directory. Installing,
// starting and ending have time limits.
//
// It anchors what is correct, not how fast things are: one thread serves
// everything, and its queue calls cost more with every message in it.
package azurite
