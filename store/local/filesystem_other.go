//go:build !linux

package local

// networkFileSystem cannot tell here; docs say that the home must be local.
func networkFileSystem(string) (string, error) { return "", nil }
