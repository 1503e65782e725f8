"""The rooms of kinds of sources: what lists and reads things that are no pages of web sites."""
