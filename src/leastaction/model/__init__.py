"""Describe a mechanism and build the model that methods run on."""
