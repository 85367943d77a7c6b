"""Walks over graphs, stack trees and address intervals."""
