"""The cluster's last answers, for clients that ask the same while it does not answer."""

from __future__ import annotations

from typing import Final, NamedTuple

ALL_BYTES_MAX: Final = 16 << 20
ONE_BYTES_MAX: Final = 2 << 20


class Question(NamedTuple):
    """Who asks what: nobody is told what was another's answer. ``raw`` is the whole request."""

    principal: str
    version: int
    raw: bytes


class RememberedAnswers:
    """The last answer to each question; those that were used the longest ago are forgotten."""

    def __init__(self) -> None:
        self._answers: dict[Question, bytes] = {}
        self._bytes = 0

    def note(self, question: Question, body: bytes) -> None:
        """Remember an answer instead of the one before."""
        self._forget(question)
        if len(question.raw) + len(body) > ONE_BYTES_MAX:
            return
        self._answers[question] = body
        self._bytes += len(question.raw) + len(body)
        while self._bytes > ALL_BYTES_MAX:
            self._forget(next(iter(self._answers)))

    def find(self, question: Question) -> bytes | None:
        """The last answer, if it is known."""
        return self._answers.get(question)

    def _forget(self, question: Question) -> None:
        body = self._answers.pop(question, None)
        if body is not None:
            self._bytes -= len(question.raw) + len(body)
