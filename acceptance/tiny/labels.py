"""What training may know of meanings: of a fact, of a question, of the answer, of an option.

A small model finds out by itself what a phrase means, but not soon; told for each piece, it learns
in minutes. The numbers mean nothing outside training.
"""

from __future__ import annotations

NONE = -1

# Answers, and what options say.
YES, NO, UNKNOWN, HOLDS, NOT = range(5)
OPINION = 5
TEAM = 8
CAUSE = 14
COUNT = 20
ABOVE, BELOW = 26, 27
RANK = 28
"""Of an option among the others: by value from the largest, by time from the first."""
MEANINGS = RANK + 6

# Facts: each claim and whether it holds, then topics.
CLAIMS = 32
FACT_TEAM = 2 * CLAIMS
FACT_CAUSE = FACT_TEAM + 6
FACT_OPINION = FACT_CAUSE + 6
FACTS = FACT_OPINION + 3

# Questions: each claim and whether its opposite is asked for, then kinds.
(
    MOST, LEAST, FIRST, LAST, OVER, UNDER, WHICH_IS, WHICH_IS_NOT, WHO, WHAT, VALUE, KEY, ROUTE,
    FEEL, WHY, HOW_MANY, NEUTRAL, COMPARE, ANY, ALL,
) = range(2 * CLAIMS, 2 * CLAIMS + 20)  # fmt: skip
QUESTIONS = 2 * CLAIMS + 20

_FACT = 0xE200


def fact_mark(fact: int) -> str:
    """The mark for the end of a fact in a state."""
    return chr(_FACT + fact)


def marked_fact(mark: str) -> int:
    """The fact of a mark, or NONE for a mark of another kind."""
    return ord(mark) - _FACT if _FACT <= ord(mark) < _FACT + FACTS else NONE


MARKS = f"{chr(_FACT)}-{chr(_FACT + FACTS - 1)}"
"""All of them, as a range in a regular expression."""
