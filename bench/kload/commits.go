package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// runCommits measures OffsetCommit for groups without members.
func runCommits(o options) (report, error) {
	admin, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	defer admin.conn.Close()
	t, err := admin.ensureTopic(o.topic, o.topicPartitions)
	if err != nil {
		return nil, err
	}
	if o.partitions > t.partitions {
		return nil, fmt.Errorf("topic %s has %d partitions, too few for a commit of %d",
			t.name, t.partitions, o.partitions)
	}
	groups := groupNames(o.groups)
	if err := admin.findCoordinators(groups); err != nil {
		return nil, err
	}
	loads := make([]load, o.conns)
	for i := range loads {
		loads[i] = newSteadyCommits(groups[i%len(groups)], t, int16(o.version), o.partitions)
	}
	for _, l := range loads[:min(len(loads), len(groups))] {
		if err := admin.commitOnce(l.(*steadyCommits)); err != nil {
			return nil, err
		}
	}
	clients, err := dialAll(o.addr, o.conns)
	if err != nil {
		return nil, err
	}
	result, err := runEngine(clients, loads, o.engine())
	if err != nil {
		return nil, err
	}
	r := report{
		"groups": o.groups, "conns": o.conns, "partitions": o.partitions, "version": o.version,
		"tls": admin.describeTLS(),
	}
	r.addRate(result.ops, result.window, &result.latency, result.errors)
	r["offsets_rate"] = round(float64(result.ops) * float64(o.partitions) / result.window.seconds)
	return r, nil
}

// commitOnce waits until a group's coordinator accepts commits.
func (c *client) commitOnce(s *steadyCommits) error {
	return retry("commit offsets", func() (int16, error) {
		payload, err := c.roundTrip(s.next())
		if err != nil {
			return 0, err
		}
		return s.answered(payload)
	})
}

// steadyCommits commits increasing offsets, some of a topic's partitions per request, in turn.
type steadyCommits struct {
	version int16
	frames  [][]byte
	// Positions of the offsets in each frame.
	offsetsAt [][]int
	offset    uint64
	// The last response without errors for each frame, after the correlation id.
	accepted      [][]byte
	sent, arrived int
}

func newSteadyCommits(group string, t topic, version int16, perCommit int) *steadyCommits {
	s := &steadyCommits{version: version}
	for first := 0; first+perCommit <= t.partitions; first += perCommit {
		partitions := make([]int32, perCommit)
		for i := range partitions {
			partitions[i] = int32(first + i)
		}
		frame, offsetsAt := encodeCommit(group, t, version, partitions)
		s.frames = append(s.frames, frame)
		s.offsetsAt = append(s.offsetsAt, offsetsAt)
	}
	s.accepted = make([][]byte, len(s.frames))
	return s
}

func (s *steadyCommits) next() []byte {
	frame := s.frames[s.sent]
	s.offset++
	for _, at := range s.offsetsAt[s.sent] {
		binary.BigEndian.PutUint64(frame[at:], s.offset)
	}
	s.sent = (s.sent + 1) % len(s.frames)
	return frame
}

func (s *steadyCommits) answered(payload []byte) (int16, error) {
	at := s.arrived
	s.arrived = (s.arrived + 1) % len(s.frames)
	body := payload[4:]
	if bytes.Equal(body, s.accepted[at]) {
		return codeNone, nil
	}
	byPartition, err := decodeCommit(payload, s.version)
	if err != nil {
		return 0, err
	}
	if len(byPartition) != len(s.offsetsAt[at]) {
		return 0, fmt.Errorf("a commit of %d partitions is answered for %d",
			len(s.offsetsAt[at]), len(byPartition))
	}
	for _, code := range byPartition {
		if code != codeNone {
			return code, nil
		}
	}
	s.accepted[at] = bytes.Clone(body)
	return codeNone, nil
}
