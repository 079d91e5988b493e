"""Speculative decoding over MNN: a draft guesses, the target checks in one forward."""
