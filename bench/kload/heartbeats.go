package main

import "bytes"

// runHeartbeats measures repeated heartbeats: of members that own and report their target.
func runHeartbeats(o options) (report, error) {
	p, err := newPopulation(o, o.groups)
	if err != nil {
		return nil, err
	}
	if err := p.settle(); err != nil {
		return nil, err
	}
	cipher := p.clients[0].describeTLS()
	loads := make([]load, len(p.clients))
	steady := make([]*steadyHeartbeats, len(p.clients))
	for i, members := range p.byConn {
		steady[i] = newSteadyHeartbeats(members)
		loads[i] = steady[i]
	}
	result, err := runEngine(p.clients, loads, o.engine())
	if err != nil {
		return nil, err
	}
	if err := p.leave(); err != nil {
		return nil, err
	}
	changed := int64(0)
	for _, s := range steady {
		changed += s.changed
	}
	r := report{
		"members": o.members, "groups": o.groups, "conns": len(loads), "changed": changed,
		"tls": cipher,
	}
	r.addRate(result.ops, result.window, &result.latency, result.errors)
	return r, nil
}

// steadyHeartbeats sends the heartbeats of its members in turn.
type steadyHeartbeats struct {
	members []*member
	frames  [][]byte
	// The last response without changes for each member, after the correlation id.
	quiet         [][]byte
	sent, arrived int
	changed       int64 // responses with a new epoch or an assignment: the group was not stable
}

func newSteadyHeartbeats(members []*member) *steadyHeartbeats {
	s := &steadyHeartbeats{members: members, quiet: make([][]byte, len(members))}
	for _, m := range members {
		s.frames = append(s.frames, m.request())
	}
	return s
}

func (s *steadyHeartbeats) next() []byte {
	frame := s.frames[s.sent]
	s.sent = (s.sent + 1) % len(s.frames)
	return frame
}

func (s *steadyHeartbeats) answered(payload []byte) (int16, error) {
	at := s.arrived
	s.arrived = (s.arrived + 1) % len(s.frames)
	body := payload[4:]
	if bytes.Equal(body, s.quiet[at]) {
		return codeNone, nil
	}
	b, err := decodeHeartbeat(payload)
	if err != nil {
		return 0, err
	}
	m := s.members[at]
	if b.code == codeNone && b.epoch == m.epoch && !b.assigned {
		s.quiet[at] = bytes.Clone(body)
		return codeNone, nil
	}
	if b.code == codeNone {
		s.changed++
	}
	m.apply(b)
	s.frames[at] = m.request()
	return b.code, nil
}
