"""What the functions behind the HTTPS API share: who calls, what goes wrong, what is recorded.

It stands beside the core, which imports nothing of Powertools; each function's folder is shipped alone.
"""
