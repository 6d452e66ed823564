"""Integration methods: one file per family, none imports another."""
