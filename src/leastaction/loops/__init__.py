"""Rows of loop joints and of constraints of the user, and what solves for their multipliers, compiled."""
