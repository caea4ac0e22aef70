package main

import (
	"bufio"
	"os"
	"time"
)

// holdPause is well within a session, even if a round through all members takes long.
const holdPause = 5 * time.Second

// runMemory measures how much the server's resident memory grows with many settled members, and
// hold keeps them until standard input ends, for a caller that inspects the server's heap.
func runMemory(o options) (report, error) {
	p, err := newPopulation(o, o.groups)
	if err != nil {
		return nil, err
	}
	before, err := o.server.rssBytes()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	w, err := openWindow(o.server)
	if err != nil {
		return nil, err
	}
	if err := p.settle(); err != nil {
		return nil, err
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	settled := time.Since(started)
	after, err := o.server.rssBytes()
	if err != nil {
		return nil, err
	}
	owned := 0
	for _, members := range p.byConn {
		for _, m := range members {
			owned += len(m.owned)
		}
	}
	r := report{
		"members": o.members, "groups": o.groups, "settle_ms": toMs(settled),
		"partitions_per_member": round(float64(owned) / float64(o.members)),
	}
	if len(o.server) > 0 {
		r["settle_server_cpu_us_per_member"] = round(w.serverCPU * 1e6 / float64(o.members))
		r["rss_before_bytes"], r["rss_after_bytes"] = before, after
		r["rss_bytes_per_member"] = round(float64(after-before) / float64(o.members))
	}
	if o.hold {
		r.print()
		if err := p.hold(); err != nil {
			return nil, err
		}
		r = nil
	}
	return r, p.leave()
}

// hold keeps the members alive until standard input ends.
func (p *population) hold() error {
	released := make(chan struct{})
	go func() {
		defer close(released)
		for in := bufio.NewReader(os.Stdin); ; {
			if _, err := in.ReadByte(); err != nil {
				return
			}
		}
	}()
	for {
		if err := p.round(everyone); err != nil {
			return err
		}
		select {
		case <-released:
			return nil
		case <-time.After(holdPause):
		}
	}
}
