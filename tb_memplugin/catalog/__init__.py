"""Recordings of logdirs, files and pasted texts.

- catalog: the recordings of a logdir, cached for servers
- programs: programs that are files of their own, and their titles
- listing: the recordings of a file or path, with the problems of damaged files; all that most commands read
- fit_records: the candidates of fits in a logdir
- uploads: files and out-of-memory errors that users send to the page
"""
