"""A second, plain reading of the contract: what the answers must be, without regard for speed."""
