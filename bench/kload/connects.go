package main

import (
	"sync"
	"time"
)

// runConnects measures new connections: each is opened, secured if it is to be, asks for the
// versions of the APIs, and is closed.
func runConnects(o options) (report, error) {
	first, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	first.conn.Close()
	now := &phase{}
	loads := make([]*connects, o.conns)
	var running sync.WaitGroup
	for i := range loads {
		loads[i] = &connects{to: o.addr, phase: now}
		running.Add(1)
		go func() {
			defer running.Done()
			loads[i].run()
		}()
	}
	time.Sleep(o.warmUp)
	w, err := openWindow(o.server)
	if err == nil {
		now.recording.Store(true)
		time.Sleep(o.duration)
		now.recording.Store(false)
		err = w.close()
	}
	now.ended.Store(true)
	running.Wait()
	total := &outcome{errors: codes{}}
	for _, l := range loads {
		if err == nil {
			err = l.failure
		}
		total.latency.merge(&l.latency)
	}
	if err != nil {
		return nil, err
	}
	r := report{"conns": o.conns, "tls": first.describeTLS()}
	r.addRate(total.latency.count, w, &total.latency, total.errors)
	return r, nil
}

// connects opens one connection after the other.
type connects struct {
	to      address
	phase   *phase
	latency histogram
	failure error
}

func (l *connects) run() {
	frame := encodeApiVersions()
	for !l.phase.ended.Load() {
		started := time.Now()
		if l.failure = l.connectOnce(frame); l.failure != nil {
			return
		}
		if l.phase.recording.Load() {
			l.latency.add(time.Since(started))
		}
	}
}

func (l *connects) connectOnce(frame []byte) error {
	c, err := dial(l.to)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	payload, err := c.roundTrip(frame)
	if err != nil {
		return err
	}
	return decodeApiVersions(payload)
}
