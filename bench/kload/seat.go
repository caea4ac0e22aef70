package main

import "fmt"

// roundTripper sends a frame and returns the payload of its response.
type roundTripper interface {
	roundTrip(frame []byte) ([]byte, error)
}

// seat is one member of the classic protocol as its coordinator knows it.
type seat struct {
	group, id  string
	topic      topic
	generation int32
	owned      []int32
}

func newSeat(group string, t topic) *seat {
	return &seat{group: group, topic: t, generation: noGeneration}
}

// join makes one JoinGroup and one SyncGroup, and returns the first error code. A member that is
// unknown has no id from then on, one that needs an id has it, and joins again with it.
func (s *seat) join(to roundTripper) (int16, error) {
	payload, err := to.roundTrip(encodeJoin(s.group, s.id, encodeSubscription(s.topic.name)))
	if err != nil {
		return 0, err
	}
	j, err := decodeJoin(payload)
	if err != nil {
		return 0, err
	}
	switch j.code {
	case codeNone:
		s.id = j.member
		return s.synchronize(to, j)
	case codeMemberIDRequired:
		s.id = j.member
	case codeUnknownMemberID:
		s.forget()
	}
	return j.code, nil
}

func (s *seat) synchronize(to roundTripper, j joined) (int16, error) {
	var assignments []given
	if j.leader == j.member && !j.skips {
		assignments = s.share(j.members)
	}
	payload, err := to.roundTrip(encodeSync(s.group, s.id, j.generation, assignments))
	if err != nil {
		return 0, err
	}
	code, assignment, err := decodeSync(payload)
	if err != nil || code != codeNone {
		if code == codeUnknownMemberID {
			s.forget()
		}
		return code, err
	}
	owned, err := decodeAssignment(assignment)
	if err != nil {
		return 0, fmt.Errorf("group %s: %w", s.group, err)
	}
	s.generation, s.owned = j.generation, owned
	return codeNone, nil
}

// share deals the partitions out in turn.
func (s *seat) share(members []string) []given {
	shares := make([][]int32, len(members))
	for partition := range s.topic.partitions {
		at := partition % len(members)
		shares[at] = append(shares[at], int32(partition))
	}
	assignments := make([]given, len(members))
	for i, member := range members {
		assignments[i] = given{member, encodeAssignment(s.topic.name, shares[i])}
	}
	return assignments
}

// forget is what a member does whose coordinator does not know it.
func (s *seat) forget() { s.id, s.generation, s.owned = "", noGeneration, nil }

func (s *seat) heartbeat() []byte { return encodeClassicHeartbeat(s.group, s.id, s.generation) }
