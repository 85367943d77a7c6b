"""Where did my accelerator's memory go, and what do I do about it?"""

__version__ = "0.1.0"
