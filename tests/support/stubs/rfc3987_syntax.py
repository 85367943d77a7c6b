"""Found before the package of this name, which is then not imported: see support/without_iris.py."""

raise ImportError("tests check no IRIs")
