package main

import (
	"errors"
	"time"
)

// runConverge measures how long a settled group takes after a member joins, and after one leaves.
func runConverge(o options) (report, error) {
	c, err := newCrowd(o)
	if err != nil {
		return nil, err
	}
	initial, err := c.gather(o.members)
	if err != nil {
		return nil, err
	}
	time.Sleep(o.warmUp)
	w, err := openWindow(o.server)
	if err != nil {
		return nil, err
	}
	before := c.tracker.tally()
	var joins, leaves []float64
	for range o.rounds {
		joined, err := c.converge(o.members+1, c.joinOne)
		if err != nil {
			return nil, err
		}
		time.Sleep(o.pause)
		left, err := c.converge(o.members, c.leaveOne)
		if err != nil {
			return nil, err
		}
		time.Sleep(o.pause)
		joins, leaves = append(joins, toMs(joined)), append(leaves, toMs(left))
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	after := c.tracker.tally()
	c.disperse()
	r := report{
		"members": o.members, "partitions": c.topic.partitions, "initial_ms": toMs(initial),
		"join_ms": joins, "leave_ms": leaves, "rounds": o.rounds,
	}
	r.addCrowd(before, after, w)
	return r, nil
}

// runIdle keeps a settled group idle for a while.
func runIdle(o options) (report, error) {
	c, err := newCrowd(o)
	if err != nil {
		return nil, err
	}
	if _, err := c.gather(o.members); err != nil {
		return nil, err
	}
	time.Sleep(o.warmUp)
	w, err := openWindow(o.server)
	if err != nil {
		return nil, err
	}
	before := c.tracker.tally()
	select {
	case <-time.After(o.duration):
	case err := <-c.failed:
		return nil, err
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	after := c.tracker.tally()
	if c.tracker.epoch() == 0 {
		return nil, errors.New("the group did not stay settled")
	}
	c.disperse()
	r := report{"members": o.members, "partitions": c.topic.partitions}
	r.addCrowd(before, after, w)
	if w.hasServers {
		r["server_cpu_ms_per_second"] = round(w.serverCPU * 1000 / w.seconds)
	}
	return r, nil
}

// addCrowd adds what the members saw in a window; latency means nothing while responses are
// held on purpose.
func (r report) addCrowd(before, after tally, w *window) {
	for code, n := range before.errors {
		if after.errors[code] -= n; after.errors[code] == 0 {
			delete(after.errors, code)
		}
	}
	r.addRate(after.beats-before.beats, w, nil, after.errors)
	r["double_owned"] = after.doubled
}
