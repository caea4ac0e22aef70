package main

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// echo answers each frame with its correlation id and size bytes; it closes after limit answers.
func echo(t *testing.T, size, limit int) address {
	plain := func(conn net.Conn) net.Conn { return conn }
	return address{hostPort: serveEcho(t, size, limit, plain)}
}

func serveEcho(t *testing.T, size, limit int, wrap func(net.Conn) net.Conn) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerFrames(wrap(conn), size, limit)
		}
	}()
	return listener.Addr().String()
}

func answerFrames(conn net.Conn, size, limit int) {
	defer conn.Close()
	for range limit {
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			return
		}
		answer := make([]byte, 4+4+size)
		binary.BigEndian.PutUint32(answer, uint32(4+size))
		copy(answer[4:], frame[correlationOffset-4:][:4])
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// pings sends so many frames of a size, and answers every third with an error.
type pings struct {
	left, answers int
	frame         []byte
}

func (p *pings) next() []byte {
	if p.left == 0 {
		return nil
	}
	p.left--
	return p.frame
}

func (p *pings) answered([]byte) (int16, error) {
	p.answers++
	if p.answers%3 == 0 {
		return codeNotCoordinator, nil
	}
	return codeNone, nil
}

func drive(t *testing.T, to address, each, frameSize int, config engineConfig) (*outcome, error) {
	t.Helper()
	clients, err := dialAll(to, 5)
	if err != nil {
		t.Fatal(err)
	}
	loads := make([]load, len(clients))
	for i := range loads {
		frame := make([]byte, 4+frameSize)
		binary.BigEndian.PutUint32(frame, uint32(frameSize))
		loads[i] = &pings{left: each, frame: frame}
	}
	return runEngine(clients, loads, config)
}

func TestEngineSendsEverythingOnce(t *testing.T) {
	for _, config := range []engineConfig{{threads: 1, inFlight: 1}, {threads: 2, inFlight: 4}} {
		result, err := drive(t, echo(t, 10, 1000), 300, 20, config)
		if err != nil {
			t.Fatal(err)
		}
		if result.ops != 1500 || result.latency.count != 1500 || result.errors[codeNotCoordinator] != 500 {
			t.Errorf("%d requests, %v", result.ops, result.errors)
		}
	}
}

func TestEngineTakesFramesLargerThanItsBuffers(t *testing.T) {
	result, err := drive(t, echo(t, 3*inputSize, 1000), 4, 8<<20, engineConfig{threads: 1, inFlight: 2})
	if err != nil || result.ops != 20 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestEngineMeasuresAfterTheWarmUpAndStops(t *testing.T) {
	config := engineConfig{
		threads: 1, inFlight: 1, warmUp: 50 * time.Millisecond, duration: 100 * time.Millisecond,
	}
	result, err := drive(t, echo(t, 10, 1<<30), 1<<30, 20, config)
	if err != nil || result.ops == 0 || result.window.seconds < 0.1 || result.window.seconds > 5 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestEngineKeepsToARate(t *testing.T) {
	for _, threads := range []int{1, 2} {
		config := engineConfig{threads: threads, inFlight: 4, rate: 1000}
		result, err := drive(t, echo(t, 10, 1000), 100, 20, config)
		if err != nil || result.ops != 500 {
			t.Fatalf("%+v, %v", result, err)
		}
		if result.window.seconds < 0.45 {
			t.Errorf("500 requests at 1000 a second took %f s", result.window.seconds)
		}
	}
}

func TestEngineSaysThatTheServerHungUp(t *testing.T) {
	if _, err := drive(t, echo(t, 10, 3), 300, 20, engineConfig{threads: 1, inFlight: 1}); err == nil {
		t.Error("no error")
	}
}
