"""What every integration method is; each family has a room of its own."""
