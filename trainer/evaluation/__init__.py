"""What a model is worth: its perplexity on a text, or what it learns from labelled data."""
