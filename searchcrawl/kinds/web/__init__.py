"""Web sites, ``type = "web"``: what they are asked for besides their pages."""
