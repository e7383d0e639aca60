package busstand_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"jobq/internal/busstand"
	"jobq/internal/busstand/amqp"
)

// peer speaks AMQP frame by frame, to do what no client does.
type peer struct {
	*testing.T
	net.Conn
}

// dial opens a connection with one session on channel 0.
func dial(t *testing.T, s *busstand.Server) peer {
	t.Helper()
	p := peer{t, s.Pipe()}
	t.Cleanup(func() { p.Close() })
	p.write([]byte{'A', 'M', 'Q', 'P', 0, 1, 0, 0})
	var header [8]byte
	if _, err := io.ReadFull(p, header[:]); err != nil {
		t.Fatalf("the protocol header did not come back: %v", err)
	}
	p.send(amqp.Open, "peer", nil, uint32(2048))
	p.expect(amqp.Open)
	p.send(amqp.Begin, nil, uint32(0), uint32(100), uint32(100))
	p.expect(amqp.Begin)
	return p
}

func (p peer) write(b []byte) {
	p.Helper()
	if _, err := p.Write(b); err != nil {
		p.Fatalf("Write = error %v", err)
	}
}

func (p peer) send(code uint64, fields ...any) { p.frame(nil, code, fields...) }

func (p peer) frame(payload []byte, code uint64, fields ...any) {
	p.Helper()
	p.write(amqp.AppendFrame(nil, amqp.Frame{Code: code, Fields: fields, Payload: payload}))
}

// expect reads frames until one has the code.
func (p peer) expect(code uint64) amqp.Frame {
	p.Helper()
	for {
		f, err := amqp.ReadFrame(p, 1<<16)
		if err != nil {
			p.Fatalf("the connection ended before a frame %#x: %v", code, err)
		}
		if f.Code == code {
			return f
		}
	}
}

// refused wants a detach for a reason.
func (p peer) refused(condition string) {
	p.Helper()
	f := p.expect(amqp.Detach)
	if _, failure, _ := f.Fields.Composite(2); failure.Text(0) != condition {
		p.Errorf("the link was detached with %v, want %s", failure, condition)
	}
}

func target(address string) amqp.Described {
	return amqp.Described{Descriptor: amqp.Target, Value: []any{address}}
}

func source(address string) amqp.Described {
	return amqp.Described{Descriptor: amqp.Source, Value: []any{address}}
}

// attach opens a link that sends, on a handle.
func (p peer) attach(handle uint32, address string) {
	p.Helper()
	p.send(amqp.Attach, address, handle, false, uint8(2), uint8(0), source("peer"), target(address))
}

// listen opens a link that receives, on a handle.
func (p peer) listen(handle uint32, address string) {
	p.Helper()
	p.send(amqp.Attach, address, handle, true, uint8(2), uint8(1), source(address), target("peer"))
}

// authorize puts a token for everything.
func (p peer) authorize() {
	p.Helper()
	p.attach(0, "$cbs")
	p.expect(amqp.Flow)
	p.frame(request("put-token", "token"), amqp.Transfer, uint32(0), uint32(0), []byte("0"), uint32(0), true)
}

// request is a message to a node, about everything where that matters.
func request(operation string, body any) []byte {
	m := amqp.Message{
		Properties:  amqp.Fields{"1", nil, nil, nil, "peer"},
		Application: amqp.Map{{Key: "operation", Value: operation}, {Key: "name", Value: "amqp://stand-in/"}},
		Body:        []amqp.Described{{Descriptor: uint64(0x77), Value: body}},
	}
	return m.Append(nil)
}

func onPipe(t *testing.T, f func(t *testing.T, s *busstand.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := busstand.New(busstand.Options{})
		t.Cleanup(s.Close)
		s.CreateQueue("cpu", busstand.QueueConfig{})
		f(t, s)
	})
}

func message(id string, size int, header ...any) []byte {
	m := amqp.Message{Properties: amqp.Fields{id}, Body: []amqp.Described{{Descriptor: uint64(0x75), Value: make([]byte, size)}}}
	if header != nil {
		m.Header = header
	}
	return m.Append(nil)
}

func TestALinkNeedsAToken(t *testing.T) {
	t.Parallel()
	onPipe(t, func(t *testing.T, s *busstand.Server) {
		p := dial(t, s)
		p.attach(1, "cpu")
		p.refused(busstand.Unauthorized)
		p.authorize()
		p.attach(2, "amqps://stand-in/CPU")
		if credit, _ := p.expect(amqp.Flow).Fields.Uint32(6); credit == 0 {
			t.Error("the link has no credit")
		}
		p.attach(3, "cpu/$deadletterqueue")
		p.refused("amqp:not-allowed")
		p.listen(4, "absent")
		p.refused("amqp:not-found")
	})
}

// TestCreditAndWindow delivers within both and drains what is left.
func TestCreditAndWindow(t *testing.T) {
	t.Parallel()
	onPipe(t, func(t *testing.T, s *busstand.Server) {
		p := dial(t, s)
		p.authorize()
		p.attach(1, "cpu")
		p.expect(amqp.Flow)
		for i := range uint32(4) {
			p.frame(message(string('a'+rune(i)), 10), amqp.Transfer, uint32(1), 1+i, []byte{byte(i)}, uint32(0), true)
		}
		p.listen(2, "cpu")
		p.expect(amqp.Attach)
		p.send(amqp.Flow, uint32(0), uint32(100), uint32(5), uint32(100), uint32(2), uint32(0), uint32(2))
		p.expect(amqp.Transfer)
		p.expect(amqp.Transfer)
		// A window of one transfer holds back what the credit would allow.
		p.send(amqp.Flow, uint32(2), uint32(1), uint32(5), uint32(100), uint32(2), uint32(2), uint32(9))
		p.expect(amqp.Transfer)
		synctest.Wait()
		p.send(amqp.Flow, uint32(3), uint32(100), uint32(5), uint32(100), uint32(2), uint32(2), uint32(9), nil, true)
		p.expect(amqp.Transfer)
		f := p.expect(amqp.Flow)
		if count, credit := f.Fields.Number(5, 0), f.Fields.Number(6, 9); count != 11 || credit != 0 {
			t.Errorf("after a drain the link stands at %d with a credit of %d, want 11 and 0", count, credit)
		}
	})
}

// TestALargeMessageTakesManyFrames has a client that takes small ones only.
func TestALargeMessageTakesManyFrames(t *testing.T) {
	t.Parallel()
	onPipe(t, func(t *testing.T, s *busstand.Server) {
		p := dial(t, s)
		p.authorize()
		p.attach(1, "cpu")
		p.expect(amqp.Flow)
		whole := message("a", 10_000)
		p.frame(whole[:5000], amqp.Transfer, uint32(1), uint32(1), []byte("1"), uint32(0), true, true)
		p.frame(whole[5000:], amqp.Transfer, uint32(1))
		p.listen(2, "cpu")
		p.send(amqp.Flow, uint32(0), uint32(100), uint32(5), uint32(100), uint32(2), uint32(0), uint32(1))
		var got []byte
		for more := true; more; {
			f := p.expect(amqp.Transfer)
			if len(f.Payload) > 2048 {
				t.Errorf("a frame has %d bytes", len(f.Payload))
			}
			got, more = append(got, f.Payload...), f.Fields.Bool(5)
		}
		m, err := amqp.DecodeMessage(got)
		if err != nil || len(m.Data()) != 1 || len(m.Data()[0]) != 10_000 {
			t.Errorf("the message came as %+v, error %v", m, err)
		}
	})
}

func TestMoreThanTheLinkAllowsIsRefused(t *testing.T) {
	t.Parallel()
	onPipe(t, func(t *testing.T, s *busstand.Server) {
		s.CreateQueue("small", busstand.QueueConfig{MaxMessage: 1000})
		p := dial(t, s)
		p.authorize()
		p.attach(1, "small")
		p.expect(amqp.Flow)
		p.frame(message("a", 2000), amqp.Transfer, uint32(1), uint32(1), []byte("1"), uint32(0), true)
		p.refused("amqp:link:message-size-exceeded")
	})
}

func TestMessagesExpire(t *testing.T) {
	t.Parallel()
	onPipe(t, func(t *testing.T, s *busstand.Server) {
		p := dial(t, s)
		p.authorize()
		p.attach(1, "cpu")
		p.expect(amqp.Flow)
		p.frame(message("a", 10, nil, nil, uint32(1000)), amqp.Transfer, uint32(1), uint32(1), []byte("1"), uint32(0), true)
		p.frame(message("b", 10), amqp.Transfer, uint32(1), uint32(2), []byte("2"), uint32(0), true)
		time.Sleep(time.Second)
		p.listen(2, "cpu")
		p.send(amqp.Flow, uint32(0), uint32(100), uint32(5), uint32(100), uint32(2), uint32(0), uint32(2))
		m, err := amqp.DecodeMessage(p.expect(amqp.Transfer).Payload)
		if err != nil || m.ID() != "b" {
			t.Errorf("the first message is %+v, error %v; want b, since a has expired", m, err)
		}
	})
}

// TestASlowReaderHoldsNobodyUp has a client that asks for much and reads nothing.
func TestASlowReaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	onPipe(t, func(t *testing.T, s *busstand.Server) {
		s.CreateQueue("other", busstand.QueueConfig{})
		slow := dial(t, s)
		slow.authorize()
		slow.attach(1, "cpu")
		slow.expect(amqp.Flow)
		slow.listen(2, "cpu")
		slow.send(amqp.Flow, uint32(0), uint32(100), uint32(5), uint32(100), uint32(2), uint32(0), uint32(50))
		for i := range uint32(50) {
			slow.frame(message(string('a'+rune(i)), 5000), amqp.Transfer, uint32(1), 1+i, []byte{byte(i)}, uint32(0), true)
		}
		synctest.Wait()
		quick := dial(t, s)
		quick.authorize()
		quick.attach(1, "other")
		quick.expect(amqp.Flow)
		quick.frame(message("a", 10), amqp.Transfer, uint32(1), uint32(1), []byte("1"), uint32(0), false)
		quick.expect(amqp.Disposition)
	})
}

// TestHeartbeats keep a silent connection alive.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	onPipe(t, func(t *testing.T, s *busstand.Server) {
		p := dial(t, s)
		for range 3 {
			start := time.Now()
			f, err := amqp.ReadFrame(p, 1<<16)
			if err != nil || f.Performative() || time.Since(start) > 30*time.Second {
				t.Fatalf("ReadFrame = %+v after %v, error %v; want a heartbeat", f, time.Since(start), err)
			}
		}
	})
}

// TestNonsenseEndsThatConnectionAlone sends what is no AMQP.
func TestNonsenseEndsThatConnectionAlone(t *testing.T) {
	t.Parallel()
	onPipe(t, func(t *testing.T, s *busstand.Server) {
		good := dial(t, s)
		for _, nonsense := range [][]byte{
			[]byte("AMQP\x09\x01\x00\x00"), []byte("GET / HTTP/1.1\r\n"), bytes.Repeat([]byte{0xff}, 100),
		} {
			bad := peer{t, s.Pipe()}
			go bad.Write(nonsense)
			if _, err := io.Copy(io.Discard, bad); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%q: %v", nonsense, err)
			}
			bad.Close()
		}
		good.authorize()
		good.attach(1, "cpu")
		good.expect(amqp.Flow)
	})
}

// FuzzConnection sends any bytes after a good beginning; the server must not
// panic, and must end when it is closed.
func FuzzConnection(f *testing.F) {
	frames := func(all ...amqp.Frame) []byte {
		b := []byte{'A', 'M', 'Q', 'P', 0, 1, 0, 0}
		for _, frame := range append([]amqp.Frame{
			{Code: amqp.Open, Fields: amqp.Fields{"peer", nil, uint32(0)}},
			{Code: amqp.Begin, Fields: amqp.Fields{nil, uint32(0), uint32(9), uint32(9)}},
			{Code: amqp.Attach, Fields: amqp.Fields{"c", uint32(0), false, nil, nil, source("x"), target("$cbs")}},
			{Code: amqp.Transfer, Fields: amqp.Fields{uint32(0), uint32(0), []byte("t"), uint32(0), true}, Payload: request("put-token", "token")},
			{Code: amqp.Attach, Fields: amqp.Fields{"m", uint32(3), false, nil, nil, source("x"), target("cpu/$management")}},
			{Code: amqp.Attach, Fields: amqp.Fields{"q", uint32(1), false, nil, nil, source("x"), target("cpu")}},
			{Code: amqp.Attach, Fields: amqp.Fields{"r", uint32(2), true, nil, nil, source("cpu"), target("x")}},
		}, all...) {
			b = amqp.AppendFrame(b, frame)
		}
		return b
	}
	f.Add(frames())
	f.Add(frames(amqp.Frame{Code: amqp.Transfer, Fields: amqp.Fields{uint32(1), uint32(0), []byte("t"), uint32(0x80013700)}, Payload: message("a", 3)}))
	f.Add(frames(amqp.Frame{Code: amqp.Flow, Fields: amqp.Fields{uint32(0), uint32(9), uint32(0), uint32(9), uint32(2), uint32(0), uint32(9), nil, true, true}}))
	f.Add(frames(amqp.Frame{Code: amqp.Disposition, Fields: amqp.Fields{true, uint32(0), uint32(1 << 31), false, amqp.Described{Descriptor: amqp.Modified, Value: []any{true, true}}}}))
	f.Add(frames(amqp.Frame{Code: amqp.Detach, Fields: amqp.Fields{uint32(1), true}}, amqp.Frame{Code: amqp.End}, amqp.Frame{Code: amqp.Close}))
	for operation, body := range map[string]amqp.Map{
		"com.microsoft:renew-lock":               {{Key: "lock-tokens", Value: amqp.Array{amqp.UUID{1}}}},
		"com.microsoft:update-disposition":       {{Key: "disposition-status", Value: "suspended"}, {Key: "lock-tokens", Value: amqp.Array{amqp.UUID{1}}}},
		"com.microsoft:peek-message":             {{Key: "from-sequence-number", Value: int64(1)}, {Key: "message-count", Value: int32(9)}},
		"com.microsoft:schedule-message":         {{Key: "messages", Value: []any{amqp.Map{{Key: "message", Value: message("a", 3)}}}}},
		"com.microsoft:cancel-scheduled-message": {{Key: "sequence-numbers", Value: amqp.Array{int64(1)}}},
	} {
		f.Add(frames(amqp.Frame{Code: amqp.Transfer, Fields: amqp.Fields{uint32(3), uint32(0), []byte("t"), uint32(0)}, Payload: request(operation, body)}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := busstand.New(busstand.Options{})
		s.CreateQueue("cpu", busstand.QueueConfig{})
		c := s.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			// Until either side ends it.
			_, _ = io.Copy(io.Discard, c)
		}()
		_, _ = c.Write(b)
		c.Close()
		s.Close()
		<-done
	})
}
