"""Tests what may be sent again, after which pauses, and what is skipped of a stream that is.

  retrying_test.py
"""

import unittest

import fakes  # first: it finds the packages

from hippodrome_client import errors, retrying
from hippodrome_client.results import Piece, TokenScores


def again(after=0.0):
    return retrying.Again("HTTP 503", errors.UnavailableError("no", "unavailable", status=503), after)


class PatienceTest(unittest.TestCase):
    def patience(self, seconds):
        self.now = 0.0
        return retrying.Patience(seconds, lambda: self.now, lambda least, most: most)

    def test_pauses_double(self):
        patience = self.patience(1000)
        self.assertEqual([round(patience.pause(again(), 0), 3) for _ in range(8)],
                         [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])

    def test_no_shorter_than_asked(self):
        patience = self.patience(1000)
        self.assertEqual(patience.pause(again(), 7), 7)
        self.assertEqual(patience.pause(again(), 0.05), 0.2)

    def test_gives_up_when_nothing_comes(self):
        patience = self.patience(10)
        self.now = 9.95
        with self.assertRaisesRegex(errors.RetryError, "given up after 10 s: no") as raised:
            patience.pause(again(), 0)
        self.assertEqual((raised.exception.code, raised.exception.status), ("unavailable", 503))
        self.assertIsInstance(raised.exception.__cause__, errors.UnavailableError)
        self.assertIsInstance(raised.exception, TimeoutError)

    def test_begins_anew_when_something_came(self):
        patience = self.patience(10)
        patience.pause(again(), 0)
        self.now = 9.95
        patience.progressed()
        self.assertEqual(patience.pause(again(), 0), 0.1)

    def test_none(self):
        with self.assertRaises(errors.RetryError):
            self.patience(0).pause(again(), 0)

    def test_retry_after(self):
        self.assertEqual([retrying.seconds_of(text) for text in (None, "", "3", "0.5", "-1", "Wed, 21 Oct 2026")],
                         [0, 0, 3, 0.5, 0, 0])


class HadTest(unittest.TestCase):
    def test_the_rest_of_what_is_sent_again(self):
        had = retrying.Had()
        scores = tuple(TokenScores(-float(i)) for i in range(4))
        first = Piece("ab", (1, 2), scores[:2], scores[3:])
        self.assertEqual(had.new(first), first)
        had.begin()
        self.assertEqual(had.new(Piece("a", (1,), scores[:1], scores[3:])), Piece())
        self.assertEqual(had.new(Piece("bc", (2, 3), scores[1:3])), Piece("c", (3,), scores[2:3]))
        self.assertEqual(had.new(Piece("d", (4,))), Piece("d", (4,)))
        had.begin()
        self.assertEqual(had.new(Piece("abcde", (1, 2, 3, 4, 5))), Piece("e", (5,)))

    def test_another_answer(self):
        for other in (Piece("x"), Piece("", (7,)), Piece("a", (1,), finish_reason="stop")):
            had = retrying.Had()
            had.new(Piece("ab", (1, 2)))
            had.begin()
            with self.assertRaises(errors.OtherAnswerError):
                had.new(other)

    def test_migrated_before_where_it_was(self):
        had = retrying.Had()
        had.new(Piece("abcd", (1, 2, 3, 4)))
        had.begin()
        self.assertEqual(had.new(Piece("ab", (1, 2), finish_reason="migrated")), Piece(finish_reason="migrated"))
        had.go_on()
        had.begin()
        self.assertEqual(had.new(Piece("cdef", (3, 4, 5, 6))), Piece("ef", (5, 6)))
        had.begin()
        self.assertEqual(had.new(Piece("cdefg", (3, 4, 5, 6, 7))), Piece("g", (7,)))


if __name__ == "__main__":
    unittest.main()
