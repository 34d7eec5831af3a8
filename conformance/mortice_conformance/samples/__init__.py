"""One file of sample records for each family of ops."""
