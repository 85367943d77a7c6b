"""Bounded answers for programs: each list has at most `top` items, and `next` names the questions that go deeper."""
