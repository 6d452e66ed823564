"""Explicit methods: semi-implicit Euler, Runge-Kutta, adaptive steps."""
