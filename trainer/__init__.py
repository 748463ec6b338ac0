"""Everything that trains: the engine, the agent and the launcher. Knows nothing of the web site."""

__version__ = "0.1.0"
