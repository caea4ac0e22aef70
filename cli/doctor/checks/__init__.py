"""The checks of `muster doctor`, one subject each. None changes anything that stays."""
