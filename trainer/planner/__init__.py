"""What training a model asks of a machine: memory, bytes, tokens and days. Arithmetic; no torch.

GB is 10^9 bytes. N is a number of parameters, D of tokens.
"""
