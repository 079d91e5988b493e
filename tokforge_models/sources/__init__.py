"""Where bytes come from, and how far a reply is believed."""
