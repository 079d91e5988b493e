"""Which bundles there are and which draft a chat model is given: layers of files, checked."""
