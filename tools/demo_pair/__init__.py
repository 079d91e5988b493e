"""The stages of make_demo_pair.py."""
