package main

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"
)

// pipe is one connection with several requests in flight, as consumers have to their coordinator.
type pipe struct {
	client  *client
	mu      sync.Mutex
	waiting []chan []byte // in the order of the requests; closed without a response
	broken  error
}

var errNoAnswer = errors.New("no answer in time")

func dialPipe(to address) (*pipe, error) {
	c, err := dial(to)
	if err != nil {
		return nil, err
	}
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		c.conn.Close()
		return nil, err
	}
	p := &pipe{client: c}
	go p.read()
	return p, nil
}

// send returns a channel that gets the response, or is closed without one.
func (p *pipe) send(frame []byte) <-chan []byte {
	answer := make(chan []byte, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		close(answer)
		return answer
	}
	p.client.correlation++
	binary.BigEndian.PutUint32(frame[correlationOffset:], p.client.correlation)
	p.waiting = append(p.waiting, answer)
	if _, err := p.client.conn.Write(frame); err != nil {
		p.breakOff(err)
	}
	return answer
}

// roundTrip waits for the response, as long as a group may rebalance.
func (p *pipe) roundTrip(frame []byte) ([]byte, error) {
	select {
	case payload, ok := <-p.send(frame):
		if !ok {
			return nil, errClosed
		}
		return payload, nil
	case <-time.After(answerTimeout):
		return nil, errNoAnswer
	}
}

func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakOff(errClosed)
}

func (p *pipe) read() {
	for {
		var size [4]byte
		_, err := io.ReadFull(p.client.in, size[:])
		var payload []byte
		if err == nil {
			payload = make([]byte, binary.BigEndian.Uint32(size[:]))
			_, err = io.ReadFull(p.client.in, payload)
		}
		if err == nil && len(payload) < 4 {
			err = errMalformed
		}
		p.mu.Lock()
		if err == nil && len(p.waiting) == 0 {
			err = errMalformed
		}
		if err != nil || p.broken != nil {
			p.breakOff(err)
			p.mu.Unlock()
			return
		}
		p.waiting[0] <- payload
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
	}
}

// breakOff ends the connection; the lock is held.
func (p *pipe) breakOff(err error) {
	if p.broken != nil {
		return
	}
	p.broken = err
	p.client.conn.Close()
	for _, answer := range p.waiting {
		close(answer)
	}
	p.waiting = nil
}
