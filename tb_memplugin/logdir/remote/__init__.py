"""Remote logdirs, by fsspec: folders, and files of which only the needed byte ranges are read.

- folders: listing of folders, with one recursive listing where the store can
- entries: versions and times of files, which each store names differently
- ranges: byte ranges of a file, several at once, with retries
- reading: the content of a file, by ranges
"""
