"""Forces in joints and on bodies, and their derivatives, compiled."""
