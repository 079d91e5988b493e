"""A server that speaks the OpenAI API, over one loaded pair.

Needs the extra ``[serve]``. The engine knows nothing of it, and the command line alone imports it.
"""
