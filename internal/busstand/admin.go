package busstand

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// queueDescription is the part of the management API's document that is obeyed.
type queueDescription struct {
	LockDuration     string `xml:"content>QueueDescription>LockDuration"`
	Deduplicates     bool   `xml:"content>QueueDescription>RequiresDuplicateDetection"`
	DedupWindow      string `xml:"content>QueueDescription>DuplicateDetectionHistoryTimeWindow"`
	MaxDeliveryCount int    `xml:"content>QueueDescription>MaxDeliveryCount"`
	Sessions         bool   `xml:"content>QueueDescription>RequiresSession"`
}

// ServeHTTP is the management API: PUT, GET and DELETE of one queue.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	name := strings.Trim(r.URL.Path, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[OpAdmin]++
	if rule := s.match(OpAdmin, name); rule.Condition != "" {
		fail(w, int(statusOf(rule.Condition)), rule.Condition)
		return
	}
	switch q := s.queues[strings.ToLower(name)]; {
	case r.Method == http.MethodPut && q != nil:
		fail(w, http.StatusConflict, "the queue exists")
	case r.Method == http.MethodPut:
		s.put(w, name, body)
	case q == nil && r.Method == http.MethodGet:
		// As the service: an empty feed instead of 404.
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Publicly Listed Services</title></feed>`)
	case q == nil:
		fail(w, http.StatusNotFound, "the queue does not exist")
	case r.Method == http.MethodGet:
		q.describe(w)
	case r.Method == http.MethodDelete:
		s.delete(name)
	default:
		fail(w, http.StatusMethodNotAllowed, "not this method")
	}
}

func fail(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%d</Code><Detail>%s</Detail></Error>", status, text)
}

func (s *Server) put(w http.ResponseWriter, name string, body []byte) {
	var d queueDescription
	if err := xml.Unmarshal(body, &d); err != nil || d.Sessions {
		fail(w, http.StatusBadRequest, "not a queue that the stand-in can make")
		return
	}
	c := QueueConfig{Lock: duration(d.LockDuration), MaxDeliveries: d.MaxDeliveryCount}
	if d.Deduplicates {
		c.DedupWindow = max(duration(d.DedupWindow), 20*time.Second)
	}
	s.create(name, c)
	w.WriteHeader(http.StatusCreated)
	s.queues[strings.ToLower(name)].describe(w)
}

func (q *queue) describe(w io.Writer) {
	now, later := q.count()
	letters := 0
	if q.dead != nil {
		letters, _ = q.dead.count()
	}
	created := q.created.UTC().Format(time.RFC3339)
	_, _ = fmt.Fprintf(w, `<entry xmlns="http://www.w3.org/2005/Atom"><title type="text">%s</title><content type="application/xml">`+
		`<QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">`+
		`<LockDuration>PT%dS</LockDuration><RequiresDuplicateDetection>%t</RequiresDuplicateDetection>`+
		`<DuplicateDetectionHistoryTimeWindow>PT%dS</DuplicateDetectionHistoryTimeWindow><MaxDeliveryCount>%d</MaxDeliveryCount>`+
		`<MessageCount>%d</MessageCount><CreatedAt>%s</CreatedAt><UpdatedAt>%s</UpdatedAt><AccessedAt>%s</AccessedAt>`+
		`<CountDetails><ActiveMessageCount>%d</ActiveMessageCount><DeadLetterMessageCount>%d</DeadLetterMessageCount>`+
		`<ScheduledMessageCount>%d</ScheduledMessageCount></CountDetails></QueueDescription></content></entry>`,
		q.name, int(q.config.Lock.Seconds()), q.config.DedupWindow > 0, int(q.config.DedupWindow.Seconds()), q.config.MaxDeliveries,
		now+later+letters, created, created, created, now, letters, later)
}

var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?$`)

// duration reads an ISO 8601 duration of days and less; 0 for anything else.
func duration(text string) time.Duration {
	m := isoDuration.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	var d time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi(m[i+1])
		d += time.Duration(n) * unit
	}
	return d
}
