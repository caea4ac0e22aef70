"""Commands at run time: their turns, their replay, their answers, and reads of groups."""
