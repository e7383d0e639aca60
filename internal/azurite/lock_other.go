//go:build !unix

package azurite

// lockFile does nothing: two processes may install at once, and the second one
// to end fails and must be started again.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }
