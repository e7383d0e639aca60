// Package reaper makes a program that runs as process 1, as programs in containers
// do, fit for that place. Process 1 inherits every process whose parent has died
// and must collect it when it ends, and the kernel gives it no signal that it does
// not ask for. A worker whose commands leave processes behind would fill its
// container with dead ones.
//
// Run therefore starts the program once more, passes signals on to it, collects
// whatever dies, and ends as it ended. When process 1 ends the kernel ends all
// others of the container.
package reaper
