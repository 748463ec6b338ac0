"""The small file that installs and starts the agent. Standard library only, Python 3.9 or newer."""
