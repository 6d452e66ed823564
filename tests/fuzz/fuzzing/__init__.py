"""Random mechanisms, and properties that hold for every one of them."""
