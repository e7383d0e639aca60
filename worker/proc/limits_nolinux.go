//go:build unix && !linux

package proc

// processRooms knows of no limit: these systems do not show how much of it is used in
// a file system.
func processRooms() []room { return nil }
