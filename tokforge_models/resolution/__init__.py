"""Which draft a target runs with here, with which settings, and why."""
