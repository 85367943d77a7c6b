"""The live memory of a recording at one moment: typed answer, contract for JSON, and text."""
