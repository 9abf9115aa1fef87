# Sourced.
newer_store() { :; }
upgrades() { :; }
