"""Assignors: who gets which partitions; pure, arrays in and arrays out."""
