package local

import (
	"strings"
	"testing"
)

// TestQueriesUseIndexes asks SQLite how it would run what happens all the time
// or over many rows: nothing may read a whole table or sort.
func TestQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	const list = "SELECT workflow FROM workflow WHERE prefix = 'p'"
	const newest = " ORDER BY created_at DESC, workflow DESC LIMIT 100"
	for name, query := range map[string]string{
		"list all":            list + newest,
		"list a later page":   list + " AND (created_at, workflow) < (1, 'w')" + newest,
		"list one status":     list + " AND status = 'failed'" + newest,
		"list status, later":  list + " AND status = 'failed' AND (created_at, workflow) < (1, 'w')" + newest,
		"cancel requests":     list + " AND cancel_requested = 1 AND cancel_epoch = 0 AND status NOT IN ('completed', 'failed', 'cancelled', 'purged') ORDER BY workflow LIMIT 9",
		"due":                 "SELECT key FROM due WHERE prefix = 'p' AND due_at <= 1 ORDER BY due_at, key LIMIT 9",
		"first of a queue":    "SELECT min(visible_at) FROM message WHERE queue = 'q'",
		"take":                "SELECT number FROM message WHERE queue = 'q' AND visible_at <= 1 ORDER BY visible_at, number LIMIT 9",
		"acknowledge":         "DELETE FROM message WHERE number = 1 AND queue = 'q'",
		"count":               "SELECT count(*) FROM message WHERE queue = 'q'",
		"record with owner":   "SELECT r.body, m.id FROM record r LEFT JOIN member m ON m.id = r.owner WHERE r.prefix = 'p' AND r.workflow = 'w' AND r.task = 't' AND r.attempt = 1",
		"records of workflow": "DELETE FROM record WHERE prefix = 'p' AND workflow = 'w'",
		"outputs":             "SELECT name FROM output WHERE prefix = 'p' AND name >= 'a' AND name < x'' ORDER BY name LIMIT 9",
		"output of a file":    "SELECT 1 FROM output WHERE file = 'f' AND file <> ''",
	} {
		t.Run(name, func(t *testing.T) {
			err := s.read.rows(t.Context(), "EXPLAIN QUERY PLAN "+query, nil, func(scan func(...any) error) error {
				var id, parent, unused int
				var detail string
				if err := scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				if strings.HasPrefix(detail, "SCAN") || strings.Contains(detail, "TEMP B-TREE") {
					t.Errorf("%s: %s", query, detail)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
