package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// editor speaks to yaml-language-server, which VS Code and others use, over its
// standard input and output.
type editor struct {
	t    *testing.T
	in   io.Writer
	next int
	// messages are those of the server, in order; closed at its end.
	messages chan lspMessage
}

type lspMessage struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// startEditor starts the pinned server. scripts/setup installs it.
func startEditor(t *testing.T) *editor {
	t.Helper()
	server, err := filepath.Abs("editor/node_modules/yaml-language-server/bin/yaml-language-server")
	if err != nil {
		t.Fatal(err)
	}
	node, lookErr := exec.LookPath("node")
	_, statErr := os.Stat(server)
	if lookErr != nil || statErr != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the language server is not installed: %v %v", lookErr, statErr)
		}
		t.Skip("the language server is not installed; `make setup` does")
	}
	cmd := exec.CommandContext(t.Context(), node, server, "--stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, in: in, messages: make(chan lspMessage, 64)}
	go e.read(out)
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		for range e.messages {
		}
		cmd.Wait()
	})
	e.request("initialize", map[string]any{"processId": os.Getpid(), "rootUri": nil, "capabilities": map[string]any{
		"workspace": map[string]any{"configuration": true},
	}})
	e.send(map[string]any{"jsonrpc": "2.0", "method": "initialized", "params": map[string]any{}})
	return e
}

func (e *editor) read(out io.Reader) {
	defer close(e.messages)
	r := bufio.NewReader(out)
	for {
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			return
		}
		n, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		var m lspMessage
		if json.Unmarshal(body, &m) == nil {
			e.messages <- m
		}
	}
}

func (e *editor) send(v any) {
	e.t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		e.t.Fatal(err)
	}
}

func (e *editor) request(method string, params any) {
	e.t.Helper()
	e.next++
	e.send(map[string]any{"jsonrpc": "2.0", "id": e.next, "method": method, "params": params})
	want := strconv.Itoa(e.next)
	e.await("the answer to "+method, func(m lspMessage) bool { return m.Method == "" && string(m.ID) == want })
}

// await takes messages until one matches, answering what the server asks.
func (e *editor) await(what string, match func(lspMessage) bool) {
	e.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case m, open := <-e.messages:
			if !open {
				e.t.Fatalf("the server ended while %s was awaited", what)
			}
			if m.Method != "" && m.ID != nil {
				e.answer(m)
				continue
			}
			if match(m) {
				return
			}
		case <-limit.C:
			e.t.Fatalf("%s did not come", what)
		}
	}
}

// answer replies to a request of the server; the only one that matters asks for
// settings.
func (e *editor) answer(m lspMessage) {
	var result any
	if m.Method == "workspace/configuration" {
		var p struct {
			Items []struct {
				Section string `json:"section"`
			} `json:"items"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			e.t.Fatal(err)
		}
		settings := make([]any, len(p.Items))
		for i, item := range p.Items {
			if item.Section == "yaml" {
				settings[i] = map[string]any{"validate": true, "schemaStore": map[string]any{"enable": false}}
			}
		}
		result = settings
	}
	e.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

// diagnose opens a file and returns what the server complains about, one
// "line: message" each.
func (e *editor) diagnose(path, text string) []string {
	e.t.Helper()
	uri := (&url.URL{Scheme: "file", Path: path}).String()
	e.send(map[string]any{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": map[string]any{
		"textDocument": map[string]any{"uri": uri, "languageId": "yaml", "version": 1, "text": text},
	}})
	var found []string
	e.await("diagnostics of "+path, func(m lspMessage) bool {
		if m.Method != "textDocument/publishDiagnostics" {
			return false
		}
		var p struct {
			URI         string `json:"uri"`
			Diagnostics []struct {
				Message string `json:"message"`
				Range   struct {
					Start struct {
						Line int `json:"line"`
					} `json:"start"`
				} `json:"range"`
			} `json:"diagnostics"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			e.t.Fatal(err)
		}
		if p.URI != uri {
			return false
		}
		for _, d := range p.Diagnostics {
			found = append(found, fmt.Sprintf("%d: %s", d.Range.Start.Line+1, d.Message))
		}
		return true
	})
	return found
}

func TestEditorAcceptsEveryExample(t *testing.T) {
	t.Parallel()
	e := startEditor(t)
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		path, err := filepath.Abs(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# yaml-language-server: $schema=") {
			t.Errorf("%s does not name its schema in the first line", f)
		}
		if found := e.diagnose(path, string(text)); len(found) > 0 {
			t.Errorf("%s: %s", f, strings.Join(found, "; "))
		}
	}
}

func TestEditorShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := startEditor(t)
	dir, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	const head = "# yaml-language-server: $schema=../core/spec/schema.json\nname: x\n"
	for name, tc := range map[string]struct {
		text string
		line int
		want string
	}{
		"unknown key of a workflow":  {"taskz: []\ntasks: [{name: a, kwargs: {cmd: x}}]\n", 3, "taskz"},
		"unknown key of a task":      {"tasks:\n- name: a\n  dependson: [b]\n", 5, "dependson"},
		"no tasks":                   {"tasks: []\n", 3, ""},
		"tasks are no list":          {"tasks: {a: b}\n", 3, "array"},
		"a task without a name":      {"tasks:\n- kwargs: {cmd: x}\n", 4, "name"},
		"depends_on is a text":       {"tasks:\n- name: a\n  depends_on: b\n", 5, "array"},
		"a negative number of tries": {"tasks:\n- name: a\n  num_retries: -1\n", 5, "0"},
		"an unknown policy":          {"tasks:\n- name: a\n  dep_policy: most\n", 5, ""},
		"max_parallelism of zero":    {"max_parallelism: 0\ntasks:\n- name: a\n", 3, "1"},
		"an unknown result policy":   {"result_policy: some\ntasks:\n- name: a\n", 3, "all_tasks_succeed"},
	} {
		found := e.diagnose(filepath.Join(dir, "wrong-"+strings.ReplaceAll(name, " ", "-")+".yaml"), head+tc.text)
		hit := false
		for _, f := range found {
			hit = hit || strings.HasPrefix(f, strconv.Itoa(tc.line)+": ") && strings.Contains(f, tc.want)
		}
		if !hit {
			t.Errorf("%s: diagnostics %q, want one in line %d that says %q", name, found, tc.line, tc.want)
		}
	}
}
