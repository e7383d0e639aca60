// Package local keeps everything of one machine in a directory, durably and
// without a server. Any number of processes of this machine may use it at once.
//
// The directory (JOBQ_HOME, mode 0700, on a local file system) holds
//
//	store.db                    states, records, index, queues, small outputs (SQLite, WAL)
//	store.db-wal, store.db-shm  parts of store.db; never remove them alone
//	open.lock                   held while one process makes or upgrades store.db
//	live/{process}              locked for as long as the process, or its guardian, lives
//	logs/{prefix}/              task logs, plain files (path.go has the names)
//	events/{prefix}/            event logs, the same
//	scratch/{process}/          files of a running worker
//	outputs/{process}/{n}       outputs above 64 KiB, named by store.db
//
// Order and durability: one goroutine writes. It takes every request that
// waits, runs them in one transaction, commits, and only then answers them. A
// commit is synced to the disk first (synchronous=FULL), but for requests that
// nobody misses after a power failure: deliveries, acknowledgements, new attempt
// records, leases and presence. The log is written in order, so what is lost
// then is always the newest. kill -9 loses nothing that was answered. Reads have
// connections of their own and see every answered write. Logs are not synced.
//
// A process is alive while its file in live/ is locked: message locks, leases
// and records of a dead one are free at once, whatever time they had left.
//
// The package does not retry, but it waits up to busyTimeout for another
// process to commit.
package local
