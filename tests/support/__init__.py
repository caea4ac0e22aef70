"""What tests of several rooms share: a store in memory, invariants, short ways to do things."""
