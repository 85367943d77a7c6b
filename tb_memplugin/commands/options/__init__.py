"""Options of all commands, apart from what the commands read: --help of each starts without numpy."""
