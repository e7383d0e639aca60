// Package storetest holds every driver to the sentences of core/port.
//
// Run is the suite: one file a port, each a list of cases that are named by
// behaviour. Differences between drivers are read from Props, QueueProps and
// the Harness, never from the name of a driver. Besides the cases, random
// operations are compared with a slow and obvious reference model.
//
// Where a driver lives on virtual time its cases run in testing/synctest
// bubbles; elsewhere they wait, in units of Harness.Tick.
//
// Import it from _test.go files only.
package storetest
