"""Where code and packages come from: git, checkouts, distributions, installed files."""
