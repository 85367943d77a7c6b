"""Analyses of one device among many: its largest sites, its distance from the others, and the causes of it."""
