package local

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	"jobq/core/fault"
)

// schema is the history of the database: step n leads from version n to n+1
// (PRAGMA user_version). Steps are only ever added. Times are nanoseconds since
// 1970, noTime for none; tags are drawn at random, so that a thing that was
// deleted and made again never has a tag of its earlier life.
var schema = []string{`
CREATE TABLE definition (
	prefix TEXT NOT NULL, workflow TEXT NOT NULL, body BLOB NOT NULL,
	PRIMARY KEY (prefix, workflow)
) STRICT;
CREATE TABLE state (
	prefix TEXT NOT NULL, workflow TEXT NOT NULL, tag TEXT NOT NULL, body BLOB NOT NULL,
	PRIMARY KEY (prefix, workflow)
) STRICT;
CREATE TABLE record (
	prefix TEXT NOT NULL, workflow TEXT NOT NULL, task TEXT NOT NULL, attempt INTEGER NOT NULL,
	tag TEXT NOT NULL, owner TEXT NOT NULL, written_at INTEGER NOT NULL, body BLOB NOT NULL,
	PRIMARY KEY (prefix, workflow, task, attempt)
) STRICT;
CREATE TABLE workflow (
	prefix TEXT NOT NULL, workflow TEXT NOT NULL, tag TEXT NOT NULL,
	created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
	name TEXT NOT NULL, status TEXT NOT NULL, state_version INTEGER NOT NULL, epoch INTEGER NOT NULL,
	born_epoch INTEGER NOT NULL, counts TEXT NOT NULL, default_queue TEXT NOT NULL, queues TEXT NOT NULL,
	error TEXT NOT NULL, cancel_requested INTEGER NOT NULL, cancel_epoch INTEGER NOT NULL,
	PRIMARY KEY (prefix, workflow)
) STRICT;
CREATE INDEX workflow_created ON workflow (prefix, created_at, workflow);
CREATE INDEX workflow_status ON workflow (prefix, status, created_at, workflow);
CREATE INDEX workflow_cancel ON workflow (prefix, workflow) WHERE cancel_requested = 1 AND cancel_epoch = 0;
CREATE TABLE due (
	prefix TEXT NOT NULL, key TEXT NOT NULL, workflow TEXT NOT NULL, due_at INTEGER NOT NULL,
	state_version INTEGER NOT NULL, note TEXT NOT NULL,
	PRIMARY KEY (prefix, key)
) STRICT;
CREATE INDEX due_at ON due (prefix, due_at, key);
CREATE TABLE queue (
	name TEXT NOT NULL PRIMARY KEY
) STRICT;
CREATE TABLE message (
	-- AUTOINCREMENT: a receipt of a message that is gone must never fit a later one.
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	queue TEXT NOT NULL, visible_at INTEGER NOT NULL, receipt INTEGER NOT NULL, count INTEGER NOT NULL,
	process TEXT NOT NULL, sent_at INTEGER NOT NULL, id TEXT NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE INDEX message_visible ON message (queue, visible_at);
CREATE TABLE output (
	prefix TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, body BLOB NOT NULL,
	PRIMARY KEY (prefix, name)
) STRICT;
CREATE INDEX output_file ON output (file) WHERE file <> '';
CREATE TABLE trash (
	file TEXT NOT NULL PRIMARY KEY
) STRICT;
CREATE TABLE lease (
	prefix TEXT NOT NULL, name TEXT NOT NULL, holder TEXT NOT NULL, until INTEGER NOT NULL, process TEXT NOT NULL,
	PRIMARY KEY (prefix, name)
) STRICT;
CREATE TABLE member (
	id TEXT NOT NULL PRIMARY KEY,
	prefix TEXT NOT NULL, process TEXT NOT NULL, said TEXT NOT NULL, busy INTEGER NOT NULL, seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX member_process ON member (process);
`, `
-- How long the message was to be hidden when visible_at was set: after the clock was set
-- back, visible_at lies further ahead. The default is for the rows that are there; no older
-- program writes another one, see upgrade.
ALTER TABLE message ADD COLUMN hidden_for INTEGER NOT NULL DEFAULT 9223372036854775807;
`}

// oldestToLook is the oldest version that can be looked at as it is: what came later
// is for those who write.
const oldestToLook = 1

// upgrade brings the database at path, in the home root, to the newest version of the
// schema. An older program that has it open would go on writing rows as it knows them.
func upgrade(ctx context.Context, db *sql.DB, root *os.Root, path string) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return classify(err, path, "open the database")
	}
	if version > len(schema) {
		return tooNew(path, version)
	}
	if 0 < version && version < len(schema) {
		if err := noOlderUser(root, path); err != nil {
			return err
		}
	}
	for ; version < len(schema); version++ {
		if err := step(ctx, db, version); err != nil {
			return classify(err, path, fmt.Sprintf("upgrade the database to version %d", version+1))
		}
	}
	return nil
}

func tooNew(path string, version int) error {
	return fault.Newf(fault.TooNew, "%s has version %d, this program knows versions up to %d", path, version, len(schema))
}

// step leads from version to the one after it, whole or not at all.
func step(ctx context.Context, db *sql.DB, version int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, schema[version]+fmt.Sprintf("PRAGMA user_version = %d;", version+1)); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
