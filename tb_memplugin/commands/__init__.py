"""Commands of `tb-memplugin`, one file each, which is imported when it runs; `options/` declares the arguments."""
