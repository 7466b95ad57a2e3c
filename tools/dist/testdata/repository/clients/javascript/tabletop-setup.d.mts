// The types of the set-up.
