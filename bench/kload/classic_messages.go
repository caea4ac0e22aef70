package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The requests of the classic protocol, and what its members tell each other in them.

const (
	apiHeartbeat  = 12
	apiJoinGroup  = 11
	apiLeaveGroup = 13
	apiSyncGroup  = 14
)

// Error codes that only members of the classic protocol hear.
const (
	codeIllegalGeneration   int16 = 22
	codeRebalanceInProgress int16 = 27
	codeMemberIDRequired    int16 = 79
)

const (
	noGeneration     int32 = -1
	protocolType           = "consumer"
	protocolName           = "range"
	sessionTimeoutMs       = 45_000
)

func (w *writer) bytes(b []byte) {
	w.length(len(b))
	w.b = append(w.b, b...)
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func encodeJoin(group, member string, metadata []byte) []byte {
	w := newRequest(apiJoinGroup, 9)
	w.string(group)
	w.int32(sessionTimeoutMs)
	w.int32(rebalanceTimeoutMs)
	w.string(member)
	w.null() // instance id
	w.string(protocolType)
	w.length(1)
	w.string(protocolName)
	w.bytes(metadata)
	w.noTags()
	w.null() // reason
	return w.frame()
}

// joined is the response to JoinGroup; only the leader gets the members.
type joined struct {
	code           int16
	generation     int32
	leader, member string
	skips          bool // the leader computes nothing: it has come back
	members        []string
}

func decodeJoin(payload []byte) (joined, error) {
	r := newAnswer(payload)
	r.int32()
	j := joined{code: r.int16(), generation: r.int32()}
	r.string() // protocol type
	r.string() // protocol name
	j.leader, j.skips, j.member = r.string(), r.int8() == 1, r.string()
	for n := r.length(); n > 0 && !r.failed; n-- {
		j.members = append(j.members, r.string())
		r.string() // instance id
		r.take(r.length())
		r.skipTags()
	}
	return j, r.err()
}

// given is one member's part of an assignment.
type given struct {
	member     string
	assignment []byte
}

func encodeSync(group, member string, generation int32, assignments []given) []byte {
	w := newRequest(apiSyncGroup, 5)
	w.string(group)
	w.int32(generation)
	w.string(member)
	w.null() // instance id
	w.string(protocolType)
	w.string(protocolName)
	w.length(len(assignments))
	for _, g := range assignments {
		w.string(g.member)
		w.bytes(g.assignment)
		w.noTags()
	}
	return w.frame()
}

func decodeSync(payload []byte) (code int16, assignment []byte, err error) {
	r := newAnswer(payload)
	r.int32()
	code = r.int16()
	r.string() // protocol type
	r.string() // protocol name
	assignment = r.take(r.length())
	return code, assignment, r.err()
}

func encodeClassicHeartbeat(group, member string, generation int32) []byte {
	w := newRequest(apiHeartbeat, 4)
	w.string(group)
	w.int32(generation)
	w.string(member)
	w.null() // instance id
	return w.frame()
}

// decodeCode reads a response of which only the error code matters.
func decodeCode(payload []byte) (int16, error) {
	r := newAnswer(payload)
	r.int32()
	code := r.int16()
	return code, r.err()
}

func encodeLeave(group string, members []string) []byte {
	w := newRequest(apiLeaveGroup, 5)
	w.string(group)
	w.length(len(members))
	for _, member := range members {
		w.string(member)
		w.null() // instance id
		w.null() // reason
		w.noTags()
	}
	return w.frame()
}

// decodeCoordinator returns where the one group that was asked for is coordinated.
func decodeCoordinator(payload []byte) (hostPort string, code int16, err error) {
	r := newAnswer(payload)
	r.int32()
	if r.length() != 1 {
		return "", codeNone, errMalformed
	}
	r.string()
	r.int32()
	host, port := r.string(), r.int32()
	return fmt.Sprintf("%s:%d", host, port), r.int16(), r.err()
}

// encodeSubscription is what a consumer says when it joins.
func encodeSubscription(topic string) []byte {
	b := binary.BigEndian.AppendUint16(nil, 0)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = appendShortString(b, topic)
	return binary.BigEndian.AppendUint32(b, noBytes)
}

const noBytes uint32 = 1<<32 - 1

func encodeAssignment(topic string, partitions []int32) []byte {
	b := binary.BigEndian.AppendUint16(nil, 0)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = appendShortString(b, topic)
	b = binary.BigEndian.AppendUint32(b, uint32(len(partitions)))
	for _, partition := range partitions {
		b = binary.BigEndian.AppendUint32(b, uint32(partition))
	}
	return binary.BigEndian.AppendUint32(b, noBytes)
}

func appendShortString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

var errNotOurs = errors.New("an assignment that no kload has made")

// decodeAssignment reads what encodeAssignment wrote; an empty one has no partitions.
func decodeAssignment(b []byte) ([]int32, error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := &reader{b: b}
	r.int16()
	if r.int32() != 1 {
		return nil, errNotOurs
	}
	r.take(int(r.int16()))
	count := int(r.int32())
	if r.failed || count < 0 || count > len(r.b)/4 {
		return nil, errNotOurs
	}
	partitions := make([]int32, count)
	for i := range partitions {
		partitions[i] = r.int32()
	}
	return partitions, nil
}
