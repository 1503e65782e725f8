"""The rooms of kinds of sources: what of a kind no other kind has."""
