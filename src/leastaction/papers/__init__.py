"""Experiments: those of the papers, repeated, and small ones of our own; ``leastaction reproduce`` runs them.

One file for each paper or subject. ``registry`` holds the frame: what an experiment gets, what it returns, and what
is written. Every module of this folder is imported by ``registry.experiments``, so a new file needs no list.
"""
