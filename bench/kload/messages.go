package main

import "fmt"

// The requests that kload sends and the fields of their responses that it reads.

const (
	apiMetadata               = 3
	apiOffsetCommit           = 8
	apiFindCoordinator        = 10
	apiVersions               = 18
	apiCreateTopics           = 19
	apiCreatePartitions       = 37
	apiConsumerGroupHeartbeat = 68
	apiConsumerGroupDescribe  = 69
)

// Kafka's error codes that kload handles; all others are only counted.
const (
	codeNone                    int16 = 0
	codeUnknownTopicOrPartition int16 = 3
	codeLeaderNotAvailable      int16 = 5
	codeCoordinatorLoading      int16 = 14
	codeCoordinatorNotAvailable int16 = 15
	codeNotCoordinator          int16 = 16
	codeUnknownMemberID         int16 = 25
	codeTopicAlreadyExists      int16 = 36
	codeFencedMemberEpoch       int16 = 110
)

// Member epochs with a special meaning.
const (
	epochJoin  int32 = 0
	epochLeave int32 = -1
)

// isRetriable matches the errors while a coordinator is being created or loaded.
func isRetriable(code int16) bool {
	switch code {
	case codeCoordinatorLoading, codeCoordinatorNotAvailable, codeNotCoordinator:
		return true
	}
	return false
}

func encodeApiVersions() []byte {
	w := newRequest(apiVersions, 3)
	w.string(clientID)
	w.string("1")
	return w.frame()
}

// decodeApiVersions checks the error code; the header of this response never has tags.
func decodeApiVersions(payload []byte) error {
	r := &reader{b: payload[4:]}
	if code := r.int16(); code != codeNone {
		return fmt.Errorf("ApiVersions: error %d", code)
	}
	return r.err()
}

func encodeFindCoordinator(groups []string) []byte {
	w := newRequest(apiFindCoordinator, 4)
	w.int8(0) // groups
	w.length(len(groups))
	for _, group := range groups {
		w.string(group)
	}
	return w.frame()
}

// decodeFindCoordinator returns the first error code among the groups' coordinators.
func decodeFindCoordinator(payload []byte) (int16, error) {
	r := newAnswer(payload)
	r.int32()
	for n := r.length(); n > 0 && !r.failed; n-- {
		r.string()
		r.int32()
		r.string()
		r.int32()
		if code := r.int16(); code != codeNone {
			return code, r.err()
		}
		r.string()
		r.skipTags()
	}
	return codeNone, r.err()
}

// topic is what a client learns about a topic from Metadata.
type topic struct {
	name       string
	id         uuid
	partitions int
}

func encodeMetadata(name string) []byte {
	w := newRequest(apiMetadata, 12)
	w.length(1)
	w.uuid(uuid{})
	w.string(name)
	w.noTags()
	w.bool(false)
	w.bool(false)
	return w.frame()
}

// decodeMetadata returns the requested topic, or the code that says why it cannot be used
// yet; a partition without a leader counts as such.
func decodeMetadata(payload []byte) (topic, int16, error) {
	r := newAnswer(payload)
	r.int32()
	for n := r.length(); n > 0 && !r.failed; n-- {
		r.int32()
		r.string()
		r.int32()
		r.string()
		r.skipTags()
	}
	r.string()
	r.int32()
	if r.length() != 1 {
		return topic{}, codeUnknownTopicOrPartition, r.err()
	}
	code := r.int16()
	found := topic{name: r.string(), id: r.uuid()}
	r.int8()
	found.partitions = r.length()
	for n := found.partitions; n > 0 && !r.failed; n-- {
		if partitionCode := r.int16(); code == codeNone {
			code = partitionCode
		}
		r.take(4 + 4 + 4)
		for range 3 { // replicas, in-sync replicas, offline replicas
			r.take(4 * r.length())
		}
		r.skipTags()
	}
	return found, code, r.err()
}

func encodeCreateTopics(name string, partitions int) []byte {
	w := newRequest(apiCreateTopics, 7)
	w.length(1)
	w.string(name)
	w.int32(int32(partitions))
	w.int16(-1)
	w.length(0)
	w.length(0)
	w.noTags()
	w.int32(60_000)
	w.bool(false)
	return w.frame()
}

// decodeCreateTopics returns the code and the message for the created topic.
func decodeCreateTopics(payload []byte) (int16, string, error) {
	r := newAnswer(payload)
	r.int32()
	r.length()
	r.string()
	r.uuid()
	code, message := r.int16(), r.string()
	return code, message, r.err()
}

func encodeCreatePartitions(name string, partitions int) []byte {
	w := newRequest(apiCreatePartitions, 3)
	w.length(1)
	w.string(name)
	w.int32(int32(partitions))
	w.null() // replica assignment
	w.noTags()
	w.int32(60_000)
	w.bool(false)
	return w.frame()
}

// decodeCreatePartitions returns the code and the message for the grown topic.
func decodeCreatePartitions(payload []byte) (int16, string, error) {
	r := newAnswer(payload)
	r.int32()
	r.length()
	r.string()
	code, message := r.int16(), r.string()
	return code, message, r.err()
}

// heartbeat is one ConsumerGroupHeartbeat request; nil fields are unchanged.
type heartbeat struct {
	group, member      string
	epoch              int32
	rebalanceTimeoutMs int32 // -1: unchanged
	subscribed         []string
	topic              uuid
	owned              []int32 // nil: unchanged; of the one topic
}

func (h heartbeat) encode() []byte {
	w := newRequest(apiConsumerGroupHeartbeat, 1)
	w.string(h.group)
	w.string(h.member)
	w.int32(h.epoch)
	w.null() // instance id
	w.null() // rack id
	w.int32(h.rebalanceTimeoutMs)
	if h.subscribed == nil {
		w.null()
	} else {
		w.length(len(h.subscribed))
		for _, name := range h.subscribed {
			w.string(name)
		}
	}
	w.null() // regex
	w.null() // server assignor
	switch {
	case h.owned == nil:
		w.null()
	case len(h.owned) == 0:
		w.length(0)
	default:
		w.length(1)
		w.uuid(h.topic)
		w.length(len(h.owned))
		for _, partition := range h.owned {
			w.int32(partition)
		}
		w.noTags()
	}
	return w.frame()
}

// beat is the response to a heartbeat.
type beat struct {
	code       int16
	message    string
	epoch      int32
	intervalMs int32
	assigned   bool // the response has an assignment
	partitions []int32
}

func decodeHeartbeat(payload []byte) (beat, error) {
	r := newAnswer(payload)
	r.int32()
	b := beat{code: r.int16(), message: r.string()}
	r.string()
	b.epoch, b.intervalMs = r.int32(), r.int32()
	b.assigned = r.int8() == 1
	if b.assigned {
		b.partitions = []int32{}
		for n := r.length(); n > 0 && !r.failed; n-- {
			r.uuid()
			for k := r.length(); k > 0 && !r.failed; k-- {
				b.partitions = append(b.partitions, r.int32())
			}
			r.skipTags()
		}
	}
	return b, r.err()
}

func encodeDescribe(group string) []byte {
	w := newRequest(apiConsumerGroupDescribe, 1)
	w.length(1)
	w.string(group)
	w.bool(false)
	return w.frame()
}

// description is the head of a ConsumerGroupDescribe response.
type description struct {
	code                        int16
	state                       string
	groupEpoch, assignmentEpoch int32
}

func decodeDescribe(payload []byte) (description, error) {
	r := newAnswer(payload)
	r.int32()
	r.length()
	d := description{code: r.int16()}
	r.string()
	r.string()
	d.state, d.groupEpoch, d.assignmentEpoch = r.string(), r.int32(), r.int32()
	return d, r.err()
}

// encodeCommit builds an OffsetCommit of a group without members (v9 by name, v10 by topic id)
// and returns the positions of the offsets in the frame.
func encodeCommit(group string, t topic, version int16, partitions []int32) ([]byte, []int) {
	return encodeCommitAs(group, "", noGeneration, t, version, partitions)
}

// encodeCommitAs builds the same of a member.
func encodeCommitAs(
	group, member string, generation int32, t topic, version int16, partitions []int32,
) ([]byte, []int) {
	w := newRequest(apiOffsetCommit, version)
	w.string(group)
	w.int32(generation)
	w.string(member)
	w.null()
	w.length(1)
	if version >= 10 {
		w.uuid(t.id)
	} else {
		w.string(t.name)
	}
	w.length(len(partitions))
	offsetsAt := make([]int, 0, len(partitions))
	for _, partition := range partitions {
		w.int32(partition)
		offsetsAt = append(offsetsAt, len(w.b))
		w.int64(0)
		w.int32(-1)
		w.string("")
		w.noTags()
	}
	w.noTags()
	return w.frame(), offsetsAt
}

// decodeCommit returns the error code of each partition in the response.
func decodeCommit(payload []byte, version int16) ([]int16, error) {
	r := newAnswer(payload)
	r.int32()
	var codes []int16
	for n := r.length(); n > 0 && !r.failed; n-- {
		if version >= 10 {
			r.uuid()
		} else {
			r.string()
		}
		for k := r.length(); k > 0 && !r.failed; k-- {
			r.int32()
			codes = append(codes, r.int16())
			r.skipTags()
		}
		r.skipTags()
	}
	return codes, r.err()
}
