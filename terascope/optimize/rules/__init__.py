"""One file a rule, spelled the same in file, function, trace and test."""
