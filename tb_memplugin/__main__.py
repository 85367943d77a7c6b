"""python -m tb_memplugin: the same as the command `tb-memplugin`."""

import sys

from tb_memplugin.cli import main

if __name__ == "__main__":
    sys.exit(main())
