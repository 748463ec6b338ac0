"""The program on a volunteer's machine: from a device token to a training session, and back."""
