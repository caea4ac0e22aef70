package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// The requests that carry records, and those that read offsets.

const (
	apiProduce     = 0
	apiFetch       = 1
	apiOffsetFetch = 9
)

// recordsSize is the size of a batch with one record, which a broker with defaults just takes.
const recordsSize = 1 << 20

// batchHeader is what comes before the records of a batch; what its checksum covers begins at crcFrom.
const (
	batchHeader = 61
	crcFrom     = 21
)

// makeBatch has one record without a key, as long as is needed for the size; it must be more than
// some 16 KiB, so that the lengths in it have three bytes.
func makeBatch(size int) []byte {
	// Of the record: its length, attributes, two deltas, no key, the length of the value, no headers.
	const lengths, around = 3, 1 + 1 + 1 + 1 + 3 + 1
	value := size - batchHeader - lengths - around
	b := make([]byte, 0, size)
	b = binary.BigEndian.AppendUint64(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(size-12))
	b = binary.BigEndian.AppendUint32(b, noBytes) // leader epoch
	b = append(b, 2)
	b = binary.BigEndian.AppendUint32(b, 0) // checksum
	b = binary.BigEndian.AppendUint16(b, 0) // attributes
	b = binary.BigEndian.AppendUint32(b, 0) // last offset delta
	// Of now: a broker deletes what is older than its retention time within minutes.
	now := uint64(time.Now().UnixMilli())
	b = binary.BigEndian.AppendUint64(b, now)
	b = binary.BigEndian.AppendUint64(b, now)
	b = binary.BigEndian.AppendUint64(b, 1<<64-1) // no producer
	b = binary.BigEndian.AppendUint16(b, 1<<16-1)
	b = binary.BigEndian.AppendUint32(b, noBytes)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.AppendVarint(b, int64(around+value))
	b = append(b, 0, 0, 0)
	b = binary.AppendVarint(b, -1)
	b = binary.AppendVarint(b, int64(value))
	b = append(b, make([]byte, value)...)
	b = append(b, 0)
	sum := crc32.Checksum(b[crcFrom:], crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(b[17:], sum)
	return b
}

func encodeProduce(topic string, partition int32) []byte {
	w := newRequest(apiProduce, 9)
	w.null()   // transactional id
	w.int16(1) // the leader alone
	w.int32(30_000)
	w.length(1)
	w.string(topic)
	w.length(1)
	w.int32(partition)
	w.bytes(makeBatch(recordsSize))
	w.noTags()
	w.noTags()
	return w.frame()
}

// decodeProduce returns the code of the one partition.
func decodeProduce(payload []byte) (int16, error) {
	r := newAnswer(payload)
	r.length()
	r.string()
	r.length()
	r.int32()
	code := r.int16()
	return code, r.err()
}

// encodeFetch reads the first batch of a partition.
func encodeFetch(topic string, partition int32) []byte {
	w := newRequest(apiFetch, 12)
	w.int32(-1)
	w.int32(500)
	w.int32(1)
	w.int32(recordsSize)
	w.int8(0)
	w.int32(0) // no session
	w.int32(-1)
	w.length(1)
	w.string(topic)
	w.length(1)
	w.int32(partition)
	w.int32(-1)
	w.int64(0)
	w.int32(-1)
	w.int64(-1)
	w.int32(recordsSize)
	w.noTags()
	w.noTags()
	w.length(0)
	w.string("")
	return w.frame()
}

// decodeFetch returns the code of the one partition; less than a whole batch is an error.
func decodeFetch(payload []byte) (int16, error) {
	r := newAnswer(payload)
	r.int32()
	if code := r.int16(); code != codeNone {
		return code, r.err()
	}
	r.int32()
	r.length()
	r.string()
	r.length()
	r.int32()
	code := r.int16()
	r.take(8 + 8 + 8)
	for n := r.length(); n > 0 && !r.failed; n-- { // aborted transactions
		r.take(8 + 8)
		r.skipTags()
	}
	r.int32()
	size := r.length()
	if err := r.err(); err != nil || code != codeNone {
		return code, err
	}
	if size < recordsSize {
		return codeNone, fmt.Errorf("a fetch has %d bytes of records, not %d", size, recordsSize)
	}
	return codeNone, nil
}

func encodeOffsetFetch(group, topic string, partition int32) []byte {
	w := newRequest(apiOffsetFetch, 8)
	w.length(1)
	w.string(group)
	w.length(1)
	w.string(topic)
	w.length(1)
	w.int32(partition)
	w.noTags()
	w.noTags()
	w.bool(false)
	return w.frame()
}

// decodeOffsetFetch returns the code of the one partition; no offset is an error.
func decodeOffsetFetch(payload []byte) (int16, error) {
	r := newAnswer(payload)
	r.int32()
	r.length()
	r.string()
	if r.length() != 1 {
		// It says by its own code why there are no topics.
		code := r.int16()
		return code, r.err()
	}
	r.string()
	r.length()
	r.int32()
	offset := r.int64()
	r.int32()
	r.string()
	code := r.int16()
	if err := r.err(); err == nil && code == codeNone && offset < 0 {
		return code, fmt.Errorf("no offset of a group that has one")
	}
	return code, r.err()
}
