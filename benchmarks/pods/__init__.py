"""Generated pods with known truth: the profiles of many hosts, ranks and days, healthy or with planted faults."""
