"""Figures for `/metrics` of what not every server has, and metric families made of figures."""
