# Sourced.
troubles() { :; }
