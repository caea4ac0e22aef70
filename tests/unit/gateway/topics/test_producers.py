"""Idempotent producers: Kafka's rules for new, repeated and missing batches of one partition."""

from __future__ import annotations

from gateway.topics.log.idempotent_producers import ProducerStates, decode_producers
from gateway.topics.topic_catalogue import TopicDataError
from model.errors import ErrorCode
from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import BatchHeader, read_batch_header

LAST_SEQUENCE = (1 << 31) - 1


def header(sequence: int, count: int = 1, producer_id: int = 1, epoch: int = 0) -> BatchHeader:
    return read_batch_header(
        encode_batch(
            0,
            [(b"k", b"v")] * count,
            5,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
    )


class Log:
    """Appends batches as the partition does; answers the offset or the error code."""

    def __init__(self, states: ProducerStates | None = None) -> None:
        self.states = ProducerStates(limit=100) if states is None else states
        self.end = 0

    def append(self, batch: BatchHeader) -> int | ErrorCode:
        duplicate = self.states.find_duplicate(batch)
        if duplicate is not None:
            return duplicate.base_offset
        try:
            self.states.check_next(batch)
        except TopicDataError as error:
            return ErrorCode(error.code)
        offset, self.end = self.end, self.end + batch.count
        self.states.record(batch, offset)
        return offset


def test_batches_follow_each_other() -> None:
    log = Log()
    assert [log.append(header(s, 2)) for s in (0, 2, 4)] == [0, 2, 4]
    assert log.append(header(7, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(header(5, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(header(6, 1)) == 6


def test_the_last_five_batches_may_be_repeated() -> None:
    log = Log()
    for sequence in range(7):
        log.append(header(sequence))
    assert [log.append(header(s)) for s in range(2, 7)] == [2, 3, 4, 5, 6]
    assert log.append(header(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(header(5, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end == 7


def test_a_new_epoch_begins_at_zero_and_ends_the_old() -> None:
    log = Log()
    log.append(header(0))
    assert log.append(header(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(header(0, epoch=1)) == 1
    assert log.append(header(1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.append(header(0)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_may_begin_anywhere() -> None:
    log = Log()
    assert log.append(header(17)) == 0
    assert log.append(header(18)) == 1


def test_sequence_numbers_wrap() -> None:
    log = Log()
    assert log.append(header(LAST_SEQUENCE - 1, 4)) == 0
    assert log.append(header(LAST_SEQUENCE - 1, 4)) == 0
    assert log.append(header(3, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(header(2, 1)) == 4


def test_producers_are_apart_and_others_are_not_kept() -> None:
    log = Log()
    assert log.append(header(0, producer_id=1)) == 0
    assert log.append(header(0, producer_id=2)) == 1
    for _ in range(3):
        log.append(header(0, producer_id=-1, epoch=-1))
    assert (log.end, len(log.states)) == (5, 2)


def test_the_least_recent_producer_is_forgotten() -> None:
    log = Log(ProducerStates(limit=2))
    log.append(header(0, producer_id=1))
    log.append(header(0, producer_id=2))
    log.append(header(1, producer_id=1))
    log.append(header(0, producer_id=3))
    assert len(log.states) == 2
    assert log.append(header(9, producer_id=2)) == 4, "forgotten, so it may go on anywhere"
    assert log.append(header(7, producer_id=3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_state_survives_being_written() -> None:
    log = Log()
    for sequence in range(7):
        log.append(header(sequence, producer_id=1))
    log.append(header(0, 3, producer_id=2, epoch=4))
    read = decode_producers(log.states.encode(), limit=100)
    assert read is not None
    again = Log(read)
    assert [again.append(header(s, producer_id=1)) for s in (1, 2, 6)] == [
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        2,
        6,
    ]
    assert again.append(header(0, 3, producer_id=2, epoch=4)) == 7
    assert again.append(header(3, producer_id=2, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(decode_producers(log.states.encode(), limit=1) or ()) == 1


def test_damaged_state_is_not_believed() -> None:
    log = Log()
    log.append(header(0))
    data = log.states.encode()
    for cut in range(len(data)):
        assert decode_producers(data[:cut], 100) is None
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1
        assert decode_producers(bytes(flipped), 100) is None
