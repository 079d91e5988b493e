"""How fast a pair is here, in which way of decoding, and how sure that is."""
