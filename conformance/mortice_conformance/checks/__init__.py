"""The checks that one sample record drives. Each is `check_<name>(subject, sample[, dtype])` and raises `Failure`."""
