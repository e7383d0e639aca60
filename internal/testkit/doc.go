// Package testkit is a small world for tests of the coordinator: one store,
// coordinators as processes that can be stopped at any of their calls, and
// workers that the test plays by hand.
//
// Scenario runs a text file against such a world and compares what it says with
// what the file says; testdata of core/coord holds them. A file is reviewed by
// people who know workflows, so it prints states, never log lines. With -rewrite
// the files are written anew: read the difference and explain it in the commit.
//
// A world runs on the time of its caller, which is virtual inside a
// testing/synctest bubble. Calls are made one after the other, so that the same
// scenario makes the same calls in the same order.
package testkit
