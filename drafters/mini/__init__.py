"""The mini target (2.75 M parameters) and everything that rebuilds it; see README.md beside this file."""
