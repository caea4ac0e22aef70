package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// runAsks measures requests of one kind to a broker, or to what passes them on to it.
func runAsks(o options) (report, error) {
	kind, ok := kinds[o.kind]
	if !ok {
		return nil, fmt.Errorf("-kind is one of %s", kindNames())
	}
	admin, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	defer admin.conn.Close()
	t, err := admin.ensureTopic(o.topic, o.partitions)
	if err != nil {
		return nil, err
	}
	if err := kind.prepare(admin, o, t); err != nil {
		return nil, err
	}
	clients, err := dialAll(o.addr, o.conns)
	if err != nil {
		return nil, err
	}
	loads := make([]load, len(clients))
	for i := range loads {
		partition := int32(i % t.partitions)
		loads[i] = &sameAsks{frame: kind.encode(o, t, partition), left: o.count, read: kind.read}
	}
	config := o.engine()
	if o.count > 0 {
		config.duration = 0
	}
	result, err := runEngine(clients, loads, config)
	if err != nil {
		return nil, err
	}
	r := report{"kind": o.kind, "conns": o.conns, "in_flight": o.inFlight}
	r.addRate(result.ops, result.window, &result.latency, result.errors)
	if kind.carries {
		r["mb_per_second"] = round(float64(result.ops) * recordsSize / 1e6 / result.window.seconds)
	}
	return r, nil
}

// kind is a request that is sent again and again.
type kind struct {
	carries bool // records
	prepare func(c *client, o options, t topic) error
	encode  func(o options, t topic, partition int32) []byte
	read    func(payload []byte) (int16, error)
}

var kinds = map[string]kind{
	"metadata": {
		prepare: prepareNothing,
		encode:  func(_ options, t topic, _ int32) []byte { return encodeMetadata(t.name) },
		read: func(payload []byte) (int16, error) {
			_, code, err := decodeMetadata(payload)
			return code, err
		},
	},
	"coordinator": {
		prepare: func(c *client, o options, _ topic) error { return c.findCoordinators([]string{o.group}) },
		encode:  func(o options, _ topic, _ int32) []byte { return encodeFindCoordinator([]string{o.group}) },
		read:    decodeFindCoordinator,
	},
	"offsets": {
		prepare: func(c *client, o options, t topic) error {
			if err := c.findCoordinators([]string{o.group}); err != nil {
				return err
			}
			return c.commitOnce(newSteadyCommits(o.group, t, 9, 1))
		},
		encode: func(o options, t topic, _ int32) []byte { return encodeOffsetFetch(o.group, t.name, 0) },
		read:   decodeOffsetFetch,
	},
	"produce": {
		carries: true,
		prepare: prepareNothing,
		encode:  func(_ options, t topic, partition int32) []byte { return encodeProduce(t.name, partition) },
		read:    decodeProduce,
	},
	"fetch": {
		carries: true,
		prepare: func(c *client, _ options, t topic) error {
			for partition := range t.partitions {
				frame := encodeProduce(t.name, int32(partition))
				if err := retry("produce", func() (int16, error) {
					payload, err := c.roundTrip(frame)
					if err != nil {
						return 0, err
					}
					return decodeProduce(payload)
				}); err != nil {
					return err
				}
			}
			return nil
		},
		encode: func(_ options, t topic, partition int32) []byte { return encodeFetch(t.name, partition) },
		read:   decodeFetch,
	},
}

func kindNames() string { return strings.Join(slices.Sorted(maps.Keys(kinds)), ", ") }

func prepareNothing(*client, options, topic) error { return nil }

// sameAsks sends one frame again and again.
type sameAsks struct {
	frame    []byte
	left     int // 0: without end
	sent     int
	read     func([]byte) (int16, error)
	accepted []byte // the last small response without an error, after the correlation id
}

// smallAnswer is the most that is compared as a whole, which is cheaper than to read it again.
const smallAnswer = 16 << 10

func (s *sameAsks) next() []byte {
	if s.left > 0 && s.sent == s.left {
		return nil
	}
	s.sent++
	return s.frame
}

func (s *sameAsks) answered(payload []byte) (int16, error) {
	if s.accepted != nil && bytes.Equal(payload[4:], s.accepted) {
		return codeNone, nil
	}
	code, err := s.read(payload)
	if err == nil && code == codeNone && len(payload) <= smallAnswer {
		s.accepted = bytes.Clone(payload[4:])
	}
	return code, err
}
