"""``Maximal`` of fourth order."""
